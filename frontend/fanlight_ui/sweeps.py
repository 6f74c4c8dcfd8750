"""The parts of the pages about sweeps, pure: a sweep and its summary -> components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from fanlight.drawing.sweep_page import TALL, bars, counts, faithful, portion
from fanlight.wire import Explanation, Page, Sweep, SweepItem, SweepSummary
from fanlight_ui import cards, session, sweep_groups
from fanlight_ui.views.numbers import percent, score, seconds, when

ACTIVE = ("running", "paused")
STATES = {"running": "running", "paused": "paused", "done": "done", "cancelled": "cancelled"}
FILES = {"csv": "Every item (CSV)", "json": "Every item (JSON)", "html": "Report (HTML)"}
HELP = (
    "A sweep explains many pictures by one method: how often is the model right, how faithful are the maps, and which of them look alike? "
    "It is bulk work: pictures that people ask for go first, and it survives a restart of the server."
)


def entry(s: Sweep) -> Component:
    """One sweep in a list."""
    head: list[Any] = [
        html.Strong(dcc.Link(s.name, href=session.href(f"/sweeps/{s.id}"))),
        html.Span(STATES[s.state], className=f"tag {'live' if s.state == 'running' else s.state}"),
    ]
    parts: list[Any] = [
        html.Div(head, className="row"),
        html.P(f"{s.explainer_title} · {s.model_name} · {s.about}", className="quiet"),
    ]
    if s.state in ACTIVE:
        parts.append(bar(s))
    parts.append(html.P(f"{standing(s)} · {when(s.created)}", className="quiet num"))
    return html.Li(parts, className=f"card pad job {s.state}")


def bar(s: Sweep) -> Component:
    return html.Progress(value=str(s.progress), max="1", **{"aria-label": f"Progress of {s.name}"})


def standing(s: Sweep) -> str:
    """Where it is, in words."""
    said = [counts(s)]
    if s.state == "running":
        said.append(f"{100 * s.progress:.0f} %")
        if s.rate:
            said.append(f"{s.rate:.2g} a second")
        if s.seconds_left is not None:
            said.append(f"about {seconds(s.seconds_left)} left")
    elif s.state in ("done", "cancelled"):
        said.append(f"in {seconds(s.seconds)}")
    return " · ".join(filter(None, said))


def head(s: Sweep) -> Component:
    """Title, what was asked, and what can be done with it."""
    actions: list[Any] = []
    if s.mine and s.state in ACTIVE:
        turn = ("Pause", "sw-pause") if s.state == "running" else ("Resume", "sw-resume")
        actions += [
            html.Button(turn[0], id="sw-turn", className="button", **{"data-verb": turn[1]}),
            html.Button("Cancel", id="sw-cancel", className="button"),
        ]
    if s.request.source.words is not None:
        table = session.src(f"/api/v1/sweeps/{s.id}/study.csv")
        actions.append(html.A("Table (CSV)", href=table, download="", className="button"))
    actions += [
        files(s),
        dcc.Link("In the gallery", href=session.href("/", sweep=s.id), className="button"),
    ]
    return html.Div(
        [
            html.H1(s.name),
            html.Span(STATES[s.state], className=f"tag {'live' if s.state == 'running' else s.state}"),
            html.Span(f"{s.explainer_title} · {s.model_name}", className="quiet from"),
            html.Div(actions, className="row end"),
        ],
        className="head",
    )


def files(s: Sweep) -> Component:
    items = [
        html.Li(html.A(words, href=session.src(f"/api/v1/sweeps/{s.id}/export.{form}"), download=""))
        for form, words in FILES.items()
    ]
    said = [html.Span("Export"), html.Span(" ▾", **{"aria-hidden": "true"})]
    return html.Details(
        [html.Summary(said, className="button"), html.Ul(items)], className="menu", **{"data-menu": "x"}
    )


def progress(s: Sweep) -> list[Component]:
    """What it does now. Of one that is over a line."""
    parts: list[Component] = [html.P(s.about)]
    if s.state in ACTIVE:
        parts.append(bar(s))
    parts.append(html.P(standing(s), className="quiet num", role="status"))
    if s.problem:
        parts.append(html.P(f"Paused by the server: {s.problem}", className="warning"))
    if s.state in ACTIVE and not s.mine:
        parts.append(html.P("Somebody else asked for it; only they can pause or cancel it.", className="quiet"))
    return parts


def summary(
    s: Sweep, found: SweepSummary, known: Mapping[str, Explanation], without: Page[SweepItem]
) -> list[Component | None]:
    """Everything below the progress."""
    if not found.n:
        empty = "Nothing is finished yet." if s.state in ACTIVE else "Nothing came of it."
        return [html.P(empty, className="blank"), missing(without)]
    so_far = None
    if not found.complete:
        so_far = html.P(
            f"So far: {found.n:,} of {found.total:,} pictures. Numbers and groups change as it goes on.",
            className="quiet num",
        )
    return [
        so_far,
        html.Div([accuracy(found), trust(found)], className="columns"),
        *sweep_groups.parts(found),
        row("Most faithful", "What the map marks changes the answer most.", found.most[:4], known),
        row(
            "Least faithful",
            "Read these maps with care, or not at all.",
            [i for i in found.least[:4] if i not in found.most[:4]],
            known,
        ),
        row(
            "Wrong, and sure of it",
            "The prediction is not the label, with the highest probability.",
            found.confident[:4],
            known,
        ),
        missing(without),
    ]


def accuracy(found: SweepSummary) -> Component:
    p = found.accuracy
    parts: list[Any] = [html.H2("Right and wrong")]
    if p.value is None or p.lo is None or p.hi is None:
        parts.append(html.P("These pictures have no labels, so nothing says what is right."))
    else:
        parts += [
            html.P(percent(p.value), className="figure"),
            html.P(
                f"{p.count:,} of {p.n:,} labelled pictures predicted as labelled; "
                f"95 % interval {percent(p.lo)} to {percent(p.hi)}."
            ),
        ]
        if p.n < found.n:
            parts.append(html.P(f"{found.n - p.n:,} without a label do not count.", className="quiet"))
    return html.Section(parts, className="card pad")


def trust(found: SweepSummary) -> Component:
    f = found.faithful
    parts: list[Any] = [html.H2("Faithfulness")]
    if f.mean is None or f.quartiles is None:
        later = "Not measured yet: it follows each map, at a lower priority."
        never = "Not measured: this server measures where it is asked to, on the page of an explanation."
        parts.append(html.P(never if found.complete else later))
        return html.Section(parts, className="card pad")
    band = f" ({score(f.lo)} to {score(f.hi)})" if f.lo is not None and f.hi is not None else ""
    parts += [
        html.P(
            [
                html.Span(score(f.mean), className="figure"),
                html.Span(f" mean{band}, 95 % interval" if band else " mean", className="quiet"),
            ]
        ),
        histogram(found),
        html.P(f"{portion(f.above, 'maps are above their own floor')}."),
    ]
    if f.n < found.n:
        parts.append(
            html.P(
                f"Measured on {f.n:,} of {found.n:,} maps; the others are under way or cannot be.", className="quiet"
            )
        )
    return html.Section(parts, className="card pad")


def histogram(found: SweepSummary) -> Component:
    """Bars over the floor at 0; the same as a table for whoever cannot see them."""
    f = found.faithful
    drawn = [
        html.Span(
            className="column low" if b["low"] else "column",
            style={
                "left": f"{b['x']}%",
                "width": f"{b['width']}%",
                "height": f"{100 * b['height'] / TALL}%",
            },
            title=b["words"],
        )
        for b in bars(f)
        if b["count"]
    ]
    span = f.edges[-1] - f.edges[0]
    zero = 100 * (0 - f.edges[0]) / span
    floor = html.Span(className="floor", style={"left": f"{zero}%"})
    ticks = [html.Span(score(f.edges[0]), style={"left": "0"}), html.Span(score(f.edges[-1]), style={"right": "0"})]
    if 12 < zero < 88:
        ticks.append(html.Span("0, chance", style={"left": f"{zero}%", "transform": "translateX(-50%)"}))
    return html.Figure(
        [
            html.Div([*drawn, floor], className="histogram", role="img", **{"aria-label": faithful(f)}),
            html.Div(ticks, className="ticks", **{"aria-hidden": "true"}),
        ],
        className="distribution",
    )


def row(title: str, help: str, ids: Sequence[str], known: Mapping[str, Explanation]) -> Component | None:
    """A row of cards; None where there is nothing to show."""
    there = [known[i] for i in ids if i in known]
    if not there:
        return None
    return html.Section([html.H2(title), html.P(help, className="quiet"), cards.grid(there)], className="of-sweep")


def missing(without: Page[SweepItem]) -> Component | None:
    """What has no result, and why."""
    if not without.items:
        return None
    rows = [html.Tr([html.Th(i.name, scope="row"), html.Td(i.state), html.Td(i.reason or "")]) for i in without.items]
    more = without.total - len(without.items)
    return html.Section(
        [
            html.H2(f"Without a result: {without.total:,}"),
            html.P("They were left out of everything above; the sweep went on without them.", className="quiet"),
            html.Div(
                html.Table(
                    [
                        html.Thead(html.Tr([html.Th(h, scope="col") for h in ("Picture", "State", "Why")])),
                        html.Tbody(rows),
                    ]
                ),
                className="scroll",
                tabIndex=0,
                role="region",
                **{"aria-label": "Pictures without a result"},
            ),
            html.P(f"And {more:,} more; the CSV has all.", className="quiet") if more > 0 else None,
        ],
        className="of-sweep",
    )
