"""One model: facts, the methods that fit and why others do not, its classes, its card."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import dash
from dash import Input, Output, State, ctx, dcc, html
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight.client import calls
from fanlight.wire import ExplainerInfo, Model
from fanlight_ui import derive_panel, errors, examination, session
from fanlight_ui.views.numbers import short

dash.register_page(__name__, path_template="/models/<model_id>", title="Model · Fanlight")

SHOWN = 36
"""Classes listed at a time."""


@errors.page
async def layout(model_id: str = "", **_address: Any) -> Component:
    m, explainers, found = await asyncio.gather(
        session.ask(calls.model(model_id)), session.ask(calls.explainers()), session.ask(calls.examined(model_id))
    )
    teaching = await taught(m)
    known = {e.name: e for e in explainers}
    return html.Main(
        [
            html.Div(
                [
                    html.H1(m.name),
                    html.Div(
                        [
                            dcc.Link("Its explanations", href=session.href("/", model=m.id), className="button"),
                            dcc.Link(
                                "Explain with it", href=session.href("/explain", model=m.id), className="button primary"
                            ),
                        ],
                        className="row end",
                    ),
                ],
                className="head",
            ),
            html.P(m.description, className="lead"),
            html.Div(
                [
                    html.Div([facts(m), methods(m, known)], className="stack"),
                    html.Div(
                        [
                            examination.section(m.id, found, {e.name: e.title for e in explainers}),
                            classes(m),
                            about(m),
                            teaching,
                        ],
                        className="stack",
                    ),
                ],
                className="columns",
            ),
        ],
        className="page",
    )


async def taught(m: Model) -> Component | None:
    """None for a model that cannot be taught."""
    if m.task != "prototype-classifier":
        return None
    datasets, made = await asyncio.gather(session.ask(calls.datasets()), session.ask(calls.derivations()))
    return derive_panel.teaching(m, datasets, [d for d in made if d.model == m.id])


def facts(m: Model) -> Component:
    height, width = m.size
    rows = [
        ("Task", m.task.replace("-", " ")),
        ("Input", f"{width} × {height} px"),
        ("Terms", m.terms or "not stated"),
        ("Offers", ", ".join(m.capabilities) or "answers only"),
        ("Digest", html.Code(short(m.digest, 16), title=m.digest)),
    ]
    return html.Section(
        [
            html.H2("Facts"),
            html.Dl([html.Div([html.Dt(name), html.Dd(value)]) for name, value in rows], className="facts"),
        ],
        className="card pad",
    )


def methods(m: Model, known: Mapping[str, ExplainerInfo]) -> Component:
    """What fits first; for the rest the reason in words."""
    listed = sorted(m.explainers, key=lambda a: not a.available)
    rows = []
    for a in listed:
        info = known.get(a.name)
        title = info.title if info else a.name
        link = (
            dcc.Link(title, href=session.href("/explain", model=m.id, explainer=a.name))
            if a.available
            else html.Span(title)
        )
        said = (info.summary if info else "") if a.available else (a.reason or "It does not fit this model.")
        rows.append(
            html.Li(
                [
                    html.Span("✓" if a.available else "–", className="tick", **{"aria-hidden": "true"}),
                    html.Div(
                        [
                            html.Strong([link, html.Span("" if a.available else " does not fit", className="quiet")]),
                            html.P(said, className="quiet"),
                        ]
                    ),
                ]
            )
        )
    return html.Section([html.H2("Methods"), html.Ul(rows, className="methods")], className="card pad")


def classes(m: Model) -> Component | None:
    if not m.classes:
        return None
    return html.Section(
        [
            html.H2(f"Classes ({len(m.classes):,})"),
            html.Label("Search the classes", htmlFor="class-q", className="sr"),
            dcc.Input(id="class-q", type="search", placeholder="Search the classes", debounce=0.15, autoComplete="off"),
            dcc.Store(id="class-model", data=m.id),
            html.Div(listing(m.classes, ""), id="class-list", role="status"),
        ],
        className="card pad",
    )


def listing(names: list[str], q: str) -> list[Component]:
    """Classes whose name or number fits `q`, at most SHOWN of them."""
    q = q.strip().lower()
    fits = [(i, name) for i, name in enumerate(names) if q in name.lower() or q == str(i)]
    rows = [html.Li([html.Span(str(i), className="quiet num"), name]) for i, name in fits[:SHOWN]]
    more = len(fits) - len(rows)
    note = "No class fits." if not fits else f"and {more:,} more: search to narrow them" if more else ""
    return [html.Ul(rows, className="classes"), html.P(note, className="quiet") if note else html.Span()]


def about(m: Model) -> Component | None:
    """The model's card is somebody else's Markdown: no HTML in it, no scripts behind its links."""
    if not m.card:
        return None
    return html.Section(
        [html.H2("Card"), dcc.Markdown(m.card, className="prose", dangerously_allow_html=False, link_target="_blank")],
        className="card pad",
    )


@dash.callback(
    Output("class-list", "children"), Input("class-q", "value"), State("class-model", "data"), prevent_initial_call=True
)
async def search_classes(q: str | None, model: str) -> list[Component]:
    m = await session.ask(calls.model(model))
    return listing(m.classes or [], q or "")


@dash.callback(
    Output("mo-found", "children"),
    Output("mo-poll", "disabled"),
    Input("mo-examine", "n_clicks"),
    Input("mo-poll", "n_intervals"),
    State("mo-model", "data"),
    prevent_initial_call=True,
)
async def examine(clicks: int | None, _tick: int | None, model: str) -> tuple[Any, bool]:
    """Begins an examination, and says how it stands while it lasts."""
    if ctx.triggered_id == "mo-examine":
        if not clicks:  # a button that has just been drawn was not pressed
            raise PreventUpdate
        found = await session.ask(calls.examine(model))
    else:
        found = await session.ask(calls.examined(model))
    titles = {e.name: e.title for e in await session.ask(calls.explainers())}
    return examination.content(found, titles), found.state != "running"
