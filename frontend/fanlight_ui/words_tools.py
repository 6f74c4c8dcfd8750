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
        ],
        className="card wd-tools",
        **{"aria-label": "Scale"},
    )


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
            html.P(className="quiet", **place("rule-said")),
        ],
        className="card pad",
        **{"aria-label": "Rule of redundancy"},
    )
