"""How far to trust a map: a badge for cards and panels, and the strip with its numbers beside their floors, curves and
plain words. What is said of a measure comes from `fanlight.drawing`; nothing here knows one by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dash import html
from dash.development.base_component import Component

from fanlight import wire
from fanlight.drawing.trust import Gauge, Mark, Row, edges_alone, no_better, rows
from fanlight.wire import Trust
from fanlight_ui.views.base import meter
from fanlight_ui.views.curves import drawing
from fanlight_ui.views.numbers import score, seconds

WAITING = ("pending", "running")
CHECK = "Check further"


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
        text += f", edges {score(trust.edges['faithfulness'])}" if trust.edges and kind == "good" else ""
    else:
        text = "trust is being measured" if kind == "wait" else "trust not available"
    title = " ".join(filter(None, (words(trust), f"{edges_alone(trust).capitalize()}." if trust.edges else "")))
    return html.Span([html.Span(mark, **{"aria-hidden": "true"}), text], className=f"trust {kind}", title=title)


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
    return (
        "Above the random floor: removing what the map marks changes the answer more than removing patches in a random order does."
        + no_better(trust)
    )


def strip(
    trust: Trust, further: Sequence[wire.Measure] | None = None, jobs: Mapping[str, wire.Job] | None = None
) -> Component:
    """The whole record: words, numbers with intervals beside what random maps and edges get, curves, and what can be measured further.

    Args:
        further: what can be measured and what it will cost; None where nothing is to be offered.
        jobs: those that measure now, by id.
    """
    parts: list[Component] = [html.P(words(trust), className=f"verdict {grade(trust)}", role="status")]
    if trust.curves is not None:
        parts.append(
            drawing(trust.curves, f"Curves of insertion and deletion against the random floor. {words(trust)}", 880)
        )
    found = rows(trust)
    own = [r for r in found if r.name not in trust.checks]
    if own:
        parts.append(html.Div([row(r) for r in own], className="measures"))
        parts.append(
            html.P(
                "Scores are relative to a random order of patches on this picture: 0 is what chance gets, more is better.",
                className="quiet",
            )
        )
    checked = [r for r in found if r.name in trust.checks]
    if checked:
        parts.append(html.H3("Checked further"))
        parts.append(
            html.Div([row(r, (jobs or {}).get(trust.checks[r.name].job or "")) for r in checked], className="measures")
        )
    parts.append(offer(trust, further))
    return html.Div([p for p in parts if p is not None], className="measured")


def unmeasured(trust: Trust, further: Sequence[wire.Measure] | None) -> list[wire.Measure]:
    """What can be measured and neither was nor is being, or failed."""
    return [m for m in further or () if m.name not in trust.checks or trust.checks[m.name].state == "failed"]


def offer(trust: Trust, further: Sequence[wire.Measure] | None) -> Component | None:
    """The button that measures what is not measured yet, with what that takes; why not, where it cannot be."""
    left = unmeasured(trust, further)
    if not left:
        return None
    able = [m for m in left if m.available]
    if not able:
        return html.P(f"It cannot be checked further: {left[0].reason}", className="quiet")
    took = sum(m.seconds or 0.0 for m in able)
    listed = [
        html.Li([html.Strong(m.title), f", {m.about}", html.Span(f" {seconds(m.seconds or 0.0)}", className="quiet")])
        for m in able
    ]
    return html.Div(
        [
            html.H3("Not measured yet"),
            html.Ul(listed),
            html.Button(f"{CHECK} (about {seconds(took)})", id="ex-check", className="button small"),
        ],
        className="offer",
    )


def row(found: Row, job: wire.Job | None = None) -> Component:
    """One measure: its name, number, place between the floors, and what it means."""
    said: list[Component] = []
    if found.gauge is not None:
        said.append(gauge(found.gauge))
    if found.sentence and job is None:
        said.append(html.P(found.sentence, className=f"meaning {found.tone}"))
    if job is not None:
        said.append(progress(job))
    if found.detail:
        said.append(html.P(found.detail, className="quiet"))
    if found.curves is not None:
        picture = drawing(found.curves, f"{found.title}: {found.sentence}", 880)
        said.append(html.Details([html.Summary("Curve"), picture], className="disclosure"))
    value: list[Component] = []
    if found.value:
        marks = found.gauge.marks if found.gauge is not None else ()
        value = [html.Span(found.value, className="num"), html.Span([key(m) for m in marks], className="quiet keys")]
    head = html.Div(
        [html.Div([html.Span(found.title), html.Span(found.about, className="quiet")]), html.Div(value)],
        className="measure-head",
    )
    return html.Div([head, *said], className="measure")


def key(mark: Mark) -> Component:
    """A floor in words, with the sign that it has on the line before it."""
    return html.Span([html.Span(className=f"mark {mark.name}", **{"aria-hidden": "true"}), mark.text], className="key")


def gauge(drawn: Gauge) -> Component:
    """The number as a dot with its interval on a line, random maps as a tick and edges as a diamond."""
    marks = [html.Span(className=f"mark {m.name}", style={"left": f"{m.at}%"}, title=m.text) for m in drawn.marks]
    line = [
        html.Span(className="between", style={"left": f"{drawn.start}%", "width": f"{drawn.width}%"}),
        html.Span(className="at", style={"left": f"{drawn.at}%"}),
        *marks,  # above the dot, which would hide a floor that gets the same
    ]
    ends = html.Div([html.Span(drawn.lo), html.Span(drawn.hi)], className="ends quiet", **{"aria-hidden": "true"})
    return html.Div(
        [html.Div(line, className="line", role="img", **{"aria-label": drawn.text}), ends], className="gauge"
    )


def progress(job: wire.Job) -> Component:
    """A measurement that has not ended. assets/progress.js moves it with the events of the stream."""
    parts: list[Component] = [html.P(standing(job), className="said quiet"), meter(job)]
    if job.mine:
        cancel = html.Button(
            ["Cancel", html.Span(f" {job.title}", className="sr")],
            id={"type": "check-cancel", "job": job.id},
            className="button small",
        )
        parts.append(cancel)
    return html.Div(parts, className="waiting slim", **{"data-job": job.id})


def standing(job: wire.Job) -> str:
    """As `panels.progress_words`, which the stream's events go on with."""
    from fanlight_ui.panels import progress_words

    return progress_words(job)
