"""Trainings that run beside the server: how far each is, and how its losses went."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from fanlight.wire import Training, TrainingStep
from fanlight_ui.views.numbers import digits, seconds, when

BARS = 60


def section(found: Sequence[Training], now: float | None = None) -> list[Component]:
    if not found:
        return []
    return [html.Section([html.H2("Trainings"), html.Ul([row(t, now) for t in found], className="jobs")])]


def row(t: Training, now: float | None = None) -> Component:
    parts: list[Component] = [html.Div(html.Strong(t.title), className="row")]
    last = t.steps[-1] if t.steps else None
    if last is not None and t.state != "done":
        share = min(last.done / last.of, 1.0) if last.of else 0.0
        parts.append(html.Progress(value=str(round(share, 4)), max="1", **{"aria-label": f"Progress of {last.stage}"}))
    parts.append(html.P(words(t, now), className="quiet num"))
    if last is not None:
        parts += [curve(name, t.steps) for name in last.figures]
    return html.Li(parts, className=f"card pad job training {t.state}")


def words(t: Training, now: float | None = None) -> str:
    """Where a training stands, in words."""
    last = t.steps[-1] if t.steps else None
    at = f"{last.stage}: {last.done:,} of {last.of:,} {t.unit}" if last else "begun"
    if t.state == "done":
        return f"done in {seconds(t.updated - t.began)} · {when(t.updated, now)}"
    if t.state == "quiet":
        return f"{at} · not heard of since {when(t.updated, now)}; the same command goes on from its checkpoint"
    left = "" if t.seconds_left is None else f" · about {seconds(t.seconds_left)} left"
    return f"{at}{left}"


def curve(name: str, steps: Sequence[TrainingStep]) -> Component:
    """One figure of the last stage as bars from its least to its greatest value, with the first and the last in words."""
    values = [s.figures[name] for s in steps if s.stage == steps[-1].stage and name in s.figures]
    low, high = min(values), max(values)
    every = max(1, -(-len(values) // BARS))
    shown = values[::-every][::-1]
    bars = [html.Span(style={"height": f"{8 + 92 * (v - low) / (high - low or 1):.0f}%"}) for v in shown]
    said = (
        f"{name}: {digits(values[0])} at first, {digits(values[-1])} now"
        if len(values) > 1
        else f"{name}: {digits(values[-1])}"
    )
    return html.Div(
        [html.Span(said, className="quiet num"), html.Div(bars, className="spark", **{"aria-hidden": "true"})],
        className="figure-row",
    )
