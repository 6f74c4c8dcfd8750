"""What the doctor says of a model, on its page: what works, what each method costs here, and the button that asks anew."""

from __future__ import annotations

import time
from collections.abc import Mapping

from dash import dcc, html
from dash.development.base_component import Component

from fanlight.wire import Cost, Examination, Finding
from fanlight_ui.views.numbers import digits, seconds, when

POLL = 1500  # milliseconds
MARKS = {
    "good": ("✓", "works"),
    "warning": ("!", "works, with a note"),
    "bad": ("✗", "does not work"),
    "none": ("–", "does not apply"),
}
SHADES = {"good": "", "warning": "note", "bad": "wrong", "none": "quiet"}
WHAT = (
    "Loads the model in a process of its own, runs it on test pictures, and looks whether it repeats itself, keeps its mode and "
    "weights, and has gradients; then runs every method that fits once, for its time and memory. Methods that take long are projected."
)


def section(model: str, found: Examination, titles: Mapping[str, str]) -> Component:
    """Args: titles: of the methods by name."""
    return html.Section(
        [
            html.H2("Examination"),
            html.Div(content(found, titles), id="mo-found"),
            dcc.Store(id="mo-model", data=model),
            dcc.Interval(id="mo-poll", interval=POLL, disabled=found.state != "running"),
        ],
        className="card pad examination",
        **{"aria-label": "Examination"},
    )


def content(found: Examination, titles: Mapping[str, str], now: float | None = None) -> list[Component]:
    if found.state == "running":
        spent = (time.time() if now is None else now) - (found.since or 0)
        words = f"Being examined for {seconds(max(spent, 0))}; running the methods takes {seconds(found.seconds)} at most, loading comes before."
        bar = html.Progress(**{"aria-label": "Being examined"})
        return [html.P(words, role="status"), bar, ask("Examine it again", hidden=True)]
    if found.state == "none":
        return [html.P(WHAT, className="quiet"), ask("Examine this model")]
    verdict = "It can be explained." if found.sound else "Something is wrong: it cannot be explained as it is."
    return [
        html.P([html.Strong(verdict), f" Examined {when(found.finished or 0)}."]),
        html.Ul([check(c) for c in found.checks], className="methods"),
        *costs(found, titles),
        ask("Examine it again"),
    ]


def ask(words: str, *, hidden: bool = False) -> Component:
    """The button; it is always there, because its callback also listens to the clock."""
    return html.Button(words, id="mo-examine", className="button", hidden=hidden)


def check(c: Finding) -> Component:
    sign, words = MARKS[c.outcome]
    return html.Li(
        [
            html.Span(sign, className=f"tick {SHADES[c.outcome]}", **{"aria-hidden": "true"}),
            html.Div(
                [
                    html.Strong([c.name.capitalize(), html.Span(f": {words}", className="sr")]),
                    html.P(" ".join(filter(None, (c.says, c.hint))), className="quiet"),
                ]
            ),
        ]
    )


def costs(found: Examination, titles: Mapping[str, str]) -> list[Component]:
    """A row for each method that fits, the quickest first; nothing where none was run."""
    fits = sorted((c for c in found.costs if c.available), key=lambda c: (c.error is not None, c.seconds or 0))
    if not fits:
        return []
    head = [html.Th(t, scope="col") for t in ("Method", "Passes", "Time", "Memory", "")]
    forward = f" One forward pass takes {seconds(found.forward_seconds)}." if found.forward_seconds else ""
    rows = [html.Tr([html.Th(titles.get(c.name, c.name), scope="row"), *(html.Td(t) for t in cost(c))]) for c in fits]
    return [
        html.H3("What each method costs here, at its defaults"),
        html.P(
            f"On {found.device}.{forward} Memory is what a method needs at its peak beyond the model.",
            className="quiet",
        ),
        html.Div(
            html.Table([html.Thead(html.Tr(head)), html.Tbody(rows)], className="costs num"),
            className="scroll",
            tabIndex="0",
            role="region",
            **{"aria-label": "Costs of the methods"},
        ),
    ]


def cost(c: Cost) -> tuple[str, str, str, str]:
    if c.error:
        return "–", "–", "–", f"failed: {c.error}"
    return (
        f"{c.forwards:,}" if c.forwards is not None else "–",
        seconds(c.seconds) if c.seconds is not None else "–",
        f"{digits(c.peak_mb, 3)} MiB" if c.peak_mb is not None else "not told",
        "" if c.measured else "projected",
    )
