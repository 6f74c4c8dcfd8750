"""The tools beside the maps of the page of words: signed values, scale, band of log-SNR, rule of redundancy. assets/words.js fills them."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component


def place(name: str) -> dict[str, str]:
    """Where assets/words.js puts what it paints."""
    return {"data-wd": name}


def cross() -> Component:
    """What marks the same place in every picture and map."""
    return html.Span(className="cross", **{"aria-hidden": "true"})


def signed() -> Component:
    return html.Section(
        [
            html.H2("Help or contradict"),
            html.Div(**place("signed")),
            html.P(className="quiet", **place("signed-said")),
        ],
        className="card pad wd-signed",
        **{"aria-label": "Signed values of the picture"},
    )


def tools() -> Component:
    """The scale of all maps, and how they are shown."""
    return html.Section(
        [
            html.Div(className="wd-scale", **place("scale")),
            html.Div(className="wd-scale", **place("scale-synergy")),
            html.Div(className="wd-switches", **place("switches")),
            html.Div([html.Label("Beside these", htmlFor="wd-add"), html.Select(id="wd-add")], className="wd-switches"),
        ],
        className="card wd-tools",
        **{"aria-label": "Scale"},
    )


def others() -> Component:
    """Room for whatever other maps the artifact names: of single words, attention, the noise floor."""
    return html.Section(
        className="wd-maps wd-others", hidden=True, **place("others"), **{"aria-label": "Other maps that are shown"}
    )


BRUSHES = (1, 2, 3, 5, 9)
"""Sides of the brush, in places of the maps."""


def region() -> list[Component]:
    """A part of the picture that a person marks: by hand, by keys, or by its corners; and what every word says inside it."""
    brushes = html.Select([html.Option(f"{n} × {n}", value=str(n)) for n in BRUSHES], id="wd-brush")
    hands = [
        html.Button(text, className="wd-pill small", **{"data-brush": name, "aria-pressed": str(name == "in").lower()})
        for name, text in (("in", "mark"), ("out", "rub out"))
    ]
    box = html.Button("Do it with this rectangle", id="wd-box", className="button small")
    return [
        html.Div(
            [
                html.Button("Mark a region", id="wd-mark", className="button small", **{"aria-pressed": "false"}),
                html.Button("Clear", id="wd-clear", className="button small", disabled=True),
            ],
            className="wd-mark",
        ),
        html.Div(
            [
                html.Div(
                    [*hands, html.Label("brush", htmlFor="wd-brush"), brushes],
                    className="wd-kinds",
                    role="group",
                    **{"aria-label": "Brush"},
                ),
                html.Details(
                    [
                        html.Summary("By its corners, counted from 1"),
                        html.Div([html.Div(className="wd-corners", **place("corners")), box]),
                    ],
                    className="disclosure",
                ),
                html.P(role="status", **place("region-said")),
                html.Div(className="wd-inside", tabIndex=0, **place("inside"), **{"aria-label": "Information inside"}),
            ],
            id="wd-marking",
            className="wd-marking",
            hidden=True,
        ),
    ]


def band() -> Component:
    return html.Section(
        [
            html.Div(
                [html.H2("Amounts of noise"), html.Span(className="quiet num", **place("band-said"))],
                className="row wd-top",
            ),
            html.Div(className="wd-curve", role="img", **place("curve")),
            html.Div(className="wd-range", **place("range")),
            html.P(className="quiet", **place("curve-said")),
        ],
        className="card pad",
        **{"aria-label": "Band of log-SNR"},
    )


def rule() -> Component:
    return html.Section(
        [
            html.H2("What counts as redundant"),
            html.Div(className="wd-rule", **place("rule")),
            html.Div(id="wd-sources", hidden=True),
            html.P(className="quiet", role="status", hidden=True, **place("chances-said")),
            html.P(className="quiet", **place("rule-said")),
        ],
        className="card pad",
        **{"aria-label": "Rule of redundancy"},
    )
