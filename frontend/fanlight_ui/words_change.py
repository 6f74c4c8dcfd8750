"""Another prompt from the same noise, on the page of words: what can change, and the second picture. assets/words_change.js fills it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui.session import href
from fanlight_ui.words_tools import cross, place

WAYS = (
    ("drop_word", "leave out", "Draw it without one word"),
    ("replace_word", "replace", "Put something else in the place of a word"),
    ("exchange_words", "exchange", "Two words in each other's place"),
    ("weigh_word", "weigh", "Make a word say more, less, or the opposite"),
    ("reorder_words", "reorder", "The same words in another order"),
)
"""Edits that draw again, each with what its button says and means."""


def change(detail: Mapping[str, Any], info: wire.ExplainerInfo | None) -> Component:
    """Those ways of drawing again that the method knows. Args: info: None where it is no longer registered."""
    known = info.edits if info is not None else {}
    ways = [
        html.Button(text, className="wd-pill", title=title, **{"data-way": name, "aria-pressed": "false"})
        for name, text, title in WAYS
        if name in known
    ]
    parts: list[Component]
    if detail["drawn"] is None:
        parts = [html.P("This picture was given, not drawn, so it cannot be drawn again with other words.")]
    elif not ways:
        parts = [html.P("The method of this record is gone, so it cannot be drawn again.")]
    else:
        parts = [
            html.P("The same noise, another prompt: what differs is the words’ doing.", className="quiet"),
            html.Div(ways, className="wd-kinds", role="group", **{"aria-label": "What to change"}),
            html.Div(className="wd-change", **place("fields")),
            html.P(className="wd-reads", role="status", hidden=True, **place("reads")),
            html.Div(
                [
                    html.Button("Draw it", id="wd-draw", className="button primary", disabled=True),
                    html.Span(className="quiet", **place("draft")),
                ],
                className="row",
            ),
        ]
    return html.Section(
        [html.H2("Change the words"), *parts, html.Div(role="status", **place("drawing"))],
        className="card pad",
        id="wd-changing",
        **{"aria-label": "Change the words"},
    )


def redrawn(before: wire.Explanation | None) -> Component:
    """The picture drawn again, beside the first, what moved and what a map foretold of it. Args: before: the record that this one changed."""

    def figure(name: str, map: bool = False) -> Component:
        inside = html.Canvas(**place(f"{name}-paint")) if map else html.Img(alt="", className="wd-image", **place(name))
        return html.Figure(
            [
                html.Div(
                    [inside, cross()], className="wd-frame", **{"data-map": name}, **({"role": "img"} if map else {})
                ),
                html.Figcaption(**place(f"{name}-said")),
            ]
        )

    back = dcc.Link("The record before", href=href(f"/e/{before.id}/words"), className="quiet") if before else None
    return html.Section(
        [
            html.Div(
                [
                    html.H2(**place("redrawn-title")),
                    html.Div(
                        [back, html.Button("Take it back", id="wd-back", className="button small")], className="row"
                    ),
                ],
                className="row wd-top",
            ),
            html.Div([figure("was"), figure("now"), figure("moved", True), figure("said", True)], className="wd-four"),
            html.Div(
                [html.Label("What moved, beside", htmlFor="wd-beside"), html.Select(id="wd-beside")],
                className="wd-beside",
                **place("beside"),
            ),
            html.P(role="status", **place("redrawn-said")),
        ],
        id="wd-redrawn",
        className="card pad",
        hidden=True,
        **{"aria-label": "Drawn again"},
    )
