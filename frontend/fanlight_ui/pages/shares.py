"""Shares: who can see what, until when, and the end of it. The address of a link is shown once, when it is made."""

from __future__ import annotations

import time
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, ctx, dcc, html, no_update
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight.client import calls
from fanlight.wire import Share
from fanlight_ui import errors, session
from fanlight_ui.views.numbers import when

dash.register_page(__name__, path="/shares", title="Shares · Fanlight")

NONE = "Nothing is shared. Open an explanation and choose Share: whoever has the link sees exactly what you saw, and nothing else."


@errors.page
async def layout(**_address: Any) -> Component:
    note = html.P(
        "A link is shown once, when it is made: only its fingerprint is kept. Lost one? Make another and revoke this.",
        className="quiet",
    )
    return html.Main(
        [html.Div(html.H1("Shares"), className="head"), note, html.Div(await listing(), id="shares"), confirmation()],
        className="page narrow",
    )


def confirmation() -> Component:
    return dmc.Modal(
        [
            html.P(id="revoke-words"),
            html.Div(
                [
                    html.Button("Keep it", id="revoke-no", className="button"),
                    html.Button("Revoke the link", id="revoke-yes", className="button danger"),
                ],
                className="row end",
            ),
            dcc.Store(id="revoke-id"),
        ],
        id="revoke",
        title="Revoke this link?",
        closeButtonProps={"aria-label": "Close"},
        centered=True,
    )


async def listing() -> list[Component]:
    shares = await session.ask(calls.shares())
    if not shares:
        return [html.P(NONE, className="blank")]
    shares.sort(key=lambda s: (status(s) != "live", -s.created))
    return [html.Ul([row(s) for s in shares], className="jobs")]


def status(s: Share, now: float | None = None) -> str:
    """live, revoked or expired."""
    if s.revoked is not None:
        return "revoked"
    return "live" if s.expires > (time.time() if now is None else now) else "expired"


def name(s: Share) -> str:
    return s.title or (
        f"{len(s.explanations)} explanations" if len(s.explanations) > 1 else f"Explanation {s.explanations[0]}"
    )


def shown(s: Share) -> list[Any]:
    """Its name, leading to what it shows; several explanations are numbered."""
    if len(s.explanations) == 1:
        return [dcc.Link(name(s), href=session.href(f"/e/{s.explanations[0]}"))]
    links = [dcc.Link(str(i), href=session.href(f"/e/{id}")) for i, id in enumerate(s.explanations, 1)]
    return [name(s), ": ", *[part for link in links for part in (link, " ")]]


def row(s: Share) -> Component:
    state = status(s)
    until = {
        "live": f"until {when(s.expires)}",
        "revoked": f"revoked {when(s.revoked or 0)}",
        "expired": f"expired {when(s.expires)}",
    }[state]
    head: list[Any] = [html.Strong(shown(s)), html.Span(state, className=f"tag {state}")]
    if state == "live":
        head.append(
            html.Button(
                ["Revoke", html.Span(f" {name(s)}", className="sr")],
                id={"type": "revoke", "share": s.id},
                className="button small",
            )
        )
    parts = [
        html.Div(head, className="row"),
        html.P(
            f"made {when(s.created)} · {until} · {s.views:,} {'view' if s.views == 1 else 'views'}",
            className="quiet num",
        ),
    ]
    return html.Li(parts, className=f"card pad job {state}")


@dash.callback(
    Output("revoke", "opened"),
    Output("revoke-id", "data"),
    Output("revoke-words", "children"),
    Input({"type": "revoke", "share": ALL}, "n_clicks"),
    Input("revoke-no", "n_clicks"),
    prevent_initial_call=True,
)
async def ask_first(clicks: list[int | None], _no: int | None) -> tuple[Any, Any, Any]:
    if ctx.triggered_id == "revoke-no":
        return False, None, no_update
    if not any(clicks) or not ctx.triggered_id:
        raise PreventUpdate
    id = ctx.triggered_id["share"]
    share = next((s for s in await session.ask(calls.shares()) if s.id == id), None)
    called = f"{name(share)} was opened {share.views:,} {'time' if share.views == 1 else 'times'}. " if share else ""
    return (
        True,
        id,
        called + "Whoever opens it from now on finds nothing. This cannot be taken back; you can make a new link.",
    )


@dash.callback(
    Output("shares", "children"),
    Output("revoke", "opened", allow_duplicate=True),
    Input("revoke-yes", "n_clicks"),
    State("revoke-id", "data"),
    prevent_initial_call=True,
)
async def revoke(clicks: int | None, id: str | None) -> tuple[list[Component], bool]:
    if not clicks or not id:
        raise PreventUpdate
    await session.ask(calls.revoke(id))
    errors.toast("Revoked: the link is dead.", kind="good")
    return await listing(), False
