"""How far to trust a map: a badge for cards and panels, and the strip with its numbers, curves and plain words."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from fanlight.wire import Trust
from fanlight_ui.views.curves import drawing
from fanlight_ui.views.numbers import percent, score

WAITING = ("pending", "running")


def grade(trust: Trust) -> str:
    """good, low (not above the floor), wait or none."""
    if trust.state == "succeeded" and trust.faithfulness is not None:
        return "good" if trust.above_floor else "low"
    return "wait" if trust.state in WAITING else "none"


def badge(trust: Trust) -> Component:
    """A pill: the faithfulness, with a shape beside its colour; amber, and in words, where it is not above the random floor."""
    kind = grade(trust)
    mark = {"good": "●", "low": "▽", "wait": "◌", "none": "○"}[kind]
    if kind in ("good", "low"):
        text = f"{'faithfulness ' if kind == 'good' else 'not above chance, '}{score(trust.faithfulness or 0.0)}"
    else:
        text = "trust is being measured" if kind == "wait" else "trust not available"
    return html.Span([html.Span(mark, **{"aria-hidden": "true"}), text], className=f"trust {kind}", title=words(trust))


def words(trust: Trust) -> str:
    """The record in plain words, one or two sentences."""
    if trust.state in WAITING:
        return "Trust is being measured: it follows the picture at a lower priority and appears here by itself."
    if trust.state == "unavailable":
        return trust.reason or "Trust could not be measured for this explanation."
    if trust.state == "failed" or trust.faithfulness is None:
        return "Measuring trust failed" + (f": {trust.reason}" if trust.reason else ".")
    if not trust.above_floor:
        return "Not above the random floor here: do not read it."
    return "Above the random floor: removing what the map marks changes the answer more than removing patches in a random order does."


def strip(trust: Trust) -> Component:
    """The whole record: words, numbers with intervals, curves."""
    parts: list[Component] = [html.P(words(trust), className=f"verdict {grade(trust)}", role="status")]
    if trust.state == "succeeded":
        rows = [
            (
                "Faithfulness",
                "insertion and deletion together",
                _with_interval(trust, "faithfulness", trust.faithfulness),
            ),
            ("Insertion", "what the map marks is put in first", _with_interval(trust, "insertion", trust.insertion)),
            ("Deletion", "what the map marks is taken out first", _with_interval(trust, "deletion", trust.deletion)),
            (
                "Completeness error",
                "what the map leaves unaccounted for",
                None if trust.completeness_error is None else percent(trust.completeness_error),
            ),
        ]
        parts.append(html.Dl([_measure(*row) for row in rows if row[2] is not None], className="measures"))
        parts.append(
            html.P(
                "Scores are relative to a random order of patches on this picture: 0 is what chance gets, more is better.",
                className="quiet",
            )
        )
    if trust.curves is not None:
        parts.insert(
            1, drawing(trust.curves, f"Curves of insertion and deletion against the random floor. {words(trust)}", 880)
        )
    return html.Div(parts, className="measured")


def _with_interval(trust: Trust, name: str, value: float | None) -> str | None:
    if value is None:
        return None
    interval = trust.interval.get(name)
    return score(value) + (f"  ({score(interval.lo)} to {score(interval.hi)})" if interval else "")


def _measure(name: str, help: str, value: str | None) -> Component:
    return html.Div([html.Dt([name, html.Span(help, className="quiet")]), html.Dd(value)])
