"""Sweeps: what was swept, what is going on, and the way to a new one."""

from __future__ import annotations

from typing import Any

import dash
from dash import Input, Output, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight_ui import errors, session, sweeps

dash.register_page(__name__, path="/sweeps", title="Sweeps · Fanlight")


@errors.page
async def layout(cursor: str = "", **_address: Any) -> Component:
    head = html.Div(
        [
            html.H1("Sweeps"),
            html.Div(
                [
                    dcc.Link("New study of words", href=session.href("/studies/new"), className="button"),
                    dcc.Link("New sweep", href=session.href("/sweeps/new"), className="button primary"),
                ],
                className="row end",
            ),
        ],
        className="head",
    )
    return html.Main(
        [
            head,
            html.P(sweeps.HELP, className="quiet"),
            dcc.Store(id="sws-cursor", data=cursor),
            dcc.Interval(id="sws-poll", interval=2000),
            html.Div(await listing(cursor), id="sws-list"),
        ],
        className="page narrow",
    )


async def listing(cursor: str) -> list[Component]:
    page = await session.ask(calls.sweeps(cursor=cursor or None))
    if not page.items:
        return [
            html.P(
                "There are no sweeps yet. Choose a data set and a method, and see what the maps have in common; "
                "or two lists of words, and see which of them go together.",
                className="blank",
            )
        ]
    first = dcc.Link("First page", href=session.href("/sweeps"), className="button") if cursor else None
    more = (
        dcc.Link("More", href=session.href("/sweeps", cursor=page.next_cursor), className="button")
        if page.next_cursor
        else None
    )
    pager = html.Nav(
        [n for n in (first, more) if n is not None], className="pager", **{"aria-label": "Pages of the list"}
    )
    return [html.Ul([sweeps.entry(s) for s in page.items], className="jobs"), pager]


@dash.callback(
    Output("sws-list", "children"),
    Input("sws-poll", "n_intervals"),
    dash.State("sws-cursor", "data"),
    prevent_initial_call=True,
)
async def refresh(_ticks: int, cursor: str) -> list[Component]:
    return await listing(cursor)
