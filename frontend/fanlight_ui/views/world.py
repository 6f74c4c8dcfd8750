"""What a method scores where the truth is known: a sentence, and a bar between chance and the best possible."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from fanlight import wire
from fanlight.drawing.world import bar, number


def score(known: wire.WorldScore | None) -> Component | None:
    """The whole: sentence, bar, what it was measured on. None for a method that was never measured."""
    if known is None:
        return None
    parts: list[Component] = [html.P(known.sentence)]
    if known.headline is not None:
        parts.append(level(known.headline))
    if known.detail:
        parts.append(html.P(known.detail, className="quiet"))
    return html.Div(parts, className="world")


def of(record: wire.Explanation, info: wire.ExplainerInfo | None) -> Component | None:
    """The score of a record's method, where it is of the version that the record was computed with."""
    if info is None or info.world is None:
        return None
    if info.version != record.provenance.explainer_version:
        return html.Div(
            html.P("This record is of an older version of the method, which has no score on the field guide."),
            className="world",
        )
    return score(info.world)


def brief(known: wire.WorldScore | None) -> str:
    """The bar in a few words, for a line among others; "" without a score."""
    if known is None or known.headline is None:
        return ""
    drawn = bar(known.headline)
    return f"Field guide: {number(known.headline.value)}, {drawn.floor}, {drawn.ceiling}."


def level(found: wire.Measurement) -> Component:
    drawn = bar(found)
    track = html.Div(
        [
            html.Span(className="level", style={"width": f"{drawn.at}%"}),
            html.Span(className="between", style={"left": f"{drawn.start}%", "width": f"{drawn.width}%"}),
        ],
        className="track",
        role="img",
        **{"aria-label": drawn.text},
    )
    ends = html.Div(
        [html.Span(drawn.floor), html.Span(drawn.ceiling)], className="ends quiet", **{"aria-hidden": "true"}
    )
    return html.Div([track, ends])
