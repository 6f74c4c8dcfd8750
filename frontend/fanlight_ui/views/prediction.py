"""What the model predicts, as bars with numbers; with what it predicted before a change as an outline."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from fanlight.wire import Explanation, Prediction
from fanlight_ui.views.numbers import output

SHOWN = 5
"""Classes that are shown of a prediction."""


def explained(record: Explanation) -> int | None:
    """The class in question, also where it is explained rather than another; None before it is resolved."""
    target = record.target or {}
    return target.get("class", target.get("minus", [None])[0])


def drawn(record: Explanation) -> bool:
    """Whether it explains a picture by the words it was drawn from: there is no class, and no prediction."""
    return bool((record.target or {}).get("drawn"))


def of(record: Explanation, before: Explanation | None = None) -> Component | None:
    """The prediction of a record, None where there can be none; `before`: of the one it changed."""
    if drawn(record):
        return None
    return bars(record.prediction[:SHOWN], explained=explained(record), before=before.prediction if before else None)


def bars(
    prediction: Sequence[Prediction], *, explained: int | None = None, before: Sequence[Prediction] | None = None
) -> Component:
    """Rows of name, bar and probability; of a regression the value, without a bar.

    `explained`: the class in question, set in bold. `before`: drawn as an outline and told as a change.
    """
    if not prediction:
        return html.P("The prediction appears as soon as the model has answered.", className="quiet")
    was = {p.index: p for p in before or ()}
    return html.Ul([_row(p, p.index == explained, was.get(p.index)) for p in prediction], className="bars")


def _row(p: Prediction, strong: bool, before: Prediction | None) -> Component:
    track: list[Component] = _bar(p, "level")
    number: list[Component | str] = [output(p)]
    if before is not None:
        track += _bar(before, "before")
        number.append(html.Span(f"was {output(before)}", className="was"))
    return html.Li(
        [
            html.Span(p.name, className="name", title=p.name),
            html.Span(track, className="track", **{"aria-hidden": "true"}),
            html.Span(number, className="number"),
        ],
        className="explained" if strong else None,
    )


def _bar(p: Prediction, name: str) -> list[Component]:
    """A value is no share of anything and has no bar."""
    if p.probability is None:
        return []
    return [html.Span(className=name, style={"width": f"{100 * p.probability:.2f}%"})]
