"""Changing a model for good: muted prototypes on the page of prototypes, a further class on that of the model; the job, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, callback, dcc, html, no_update
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.drawing.trial import points
from fanlight.errors import FanlightError
from fanlight_ui.session import ask, href
from fanlight_ui.views.numbers import percent, when

POLL = 1000
OVER = ("done", "failed", "cancelled")
HELP = (
    "Mute what should never count. Taken out, it is gone for every picture, and the other weights are repaired; made to forget, it learns to look "
    "at something else. Either gives a new model; this one stays as it is."
)


def panel(record: wire.Explanation, datasets: Sequence[wire.Dataset]) -> Component:
    """Args: datasets: to repair and measure on; the server says where one has no labels."""
    return html.Section(
        [
            html.H2("Change the model for good"),
            html.P(HELP, className="quiet"),
            html.P(**{"data-pt": "gone"}, role="status"),
            dmc.Select(
                id="pt-gone-on",
                label="Pictures with labels, to learn from and measure on",
                data=[{"value": d.id, "label": f"{d.name} · {d.count:,}"} for d in datasets],
                value=record.dataset if any(d.id == record.dataset for d in datasets) else None,
                placeholder="choose a data set",
            ),
            html.Div(
                [
                    html.Button("Take them out", id="pt-gone-go", className="button small", disabled=True),
                    html.Button("Have them forget", id="pt-forget-go", className="button small", disabled=True),
                ],
                className="row",
            ),
            dcc.Store(id="pt-gone-asked"),
            dcc.Store(id="pt-gone-job"),
            dcc.Store(id="pt-gone-model", data=record.model),
            dcc.Interval(id="pt-gone-poll", interval=POLL, disabled=True),
            html.Div(id="pt-gone-shown", role="status"),
            html.P(
                [
                    "What would it do elsewhere? Try it on ",
                    dcc.Link("many pictures", href=href("/sweeps/new", model=record.model, explainer=record.explainer)),
                    " first: a sweep, and a rule for all of it.",
                ],
                className="quiet",
            ),
        ],
        className="card pad pt-gone-panel",
        **{"aria-label": "Change the model for good"},
    )


def shown(d: wire.Derivation) -> list[Component]:
    """A job, and what came of it."""
    if d.state in ("queued", "running"):
        words = "waiting for its turn" if d.state == "queued" else f"{percent(d.progress)}: {d.message}"
        bar = html.Progress(value=str(d.progress), max="1", **{"aria-label": "Progress of the change"})
        return [bar, html.P(words, className="quiet num")]
    if d.state != "done" or d.effect is None:
        return [html.P(d.problem or "It was cancelled.", className="warning")]
    e = d.effect
    c = e.difference
    band = f", 95 % interval {points(c.lo)} to {points(c.hi)}" if c.lo is not None and c.hi is not None else ""
    made: Any = dcc.Link(d.result_name, href=href(f"/models/{d.result}")) if d.result else d.result_name
    return [
        html.P([html.Strong("A new model: "), made]),
        html.P(
            f"Right on {percent(e.before.value or 0)} of {e.labelled:,} labelled pictures before, {percent(e.after.value or 0)} after "
            f"({points(c.value or 0)} points{band})"
            + (f"; without the repair {percent(e.zeroed.value or 0)}. " if e.zeroed else ". ")
            + f"{e.moved:,} {'prediction' if e.moved == 1 else 'predictions'} changed."
            + (f" Of the new class {percent(e.further.value or 0)} of {e.further.n:,} are right." if e.further else ""),
            className="num",
        ),
    ]


@callback(
    Output("pt-gone-job", "data"),
    Output("pt-gone-shown", "children"),
    Output("pt-gone-poll", "disabled"),
    Input("pt-gone-asked", "data"),
    State("pt-gone-on", "value"),
    State("pt-gone-model", "data"),
    prevent_initial_call=True,
)
async def take(asked: dict[str, Any] | None, dataset: str | None, model: str) -> tuple[Any, ...]:
    """Args: asked: {"change": {"remove" or "forget": prototypes}}, from assets/prototypes.js."""
    if not asked:
        return (no_update,) * 3
    if not dataset:
        return no_update, html.P("Choose a data set first.", className="warning"), no_update
    try:
        made = await ask(calls.derive(model, dataset, **asked["change"]))
    except FanlightError as e:
        return no_update, html.P(" ".join(filter(None, (e.message, e.hint))), className="warning"), no_update
    return made.id, shown(made), False


@callback(
    Output("pt-gone-shown", "children", allow_duplicate=True),
    Output("pt-gone-poll", "disabled", allow_duplicate=True),
    Input("pt-gone-poll", "n_intervals"),
    State("pt-gone-job", "data"),
    prevent_initial_call=True,
)
async def follow(_ticks: int, job: str | None) -> tuple[Any, ...]:
    if not job:
        return no_update, True
    found = await ask(calls.derivation(job))
    return shown(found), found.state in OVER


# --- on the page of a model


def teaching(model: wire.Model, datasets: Sequence[wire.Dataset], made: Sequence[wire.Derivation]) -> Component:
    """A further class, and what was made of a model before. Args: made: derivations, newest first."""
    return html.Section(
        [
            html.H2("Teach it a further class"),
            html.P(
                "From pictures that a data set labels so; the others should be of classes that it knows. What it knows stays as it is: "
                "a new model comes of it. Half of the pictures are learnt from, it is measured on the others.",
                className="quiet",
            ),
            html.Div(
                [
                    dmc.TextInput(id="md-class", label="Label of its pictures"),
                    dmc.Select(
                        id="md-data",
                        label="Data set",
                        data=[{"value": d.id, "label": f"{d.name} · {d.count:,}"} for d in datasets],
                        placeholder="choose a data set",
                    ),
                ],
                className="fields",
            ),
            html.Div(html.Button("Teach it", id="md-go", className="button"), className="row"),
            dcc.Store(id="md-model", data=model.id),
            dcc.Store(id="md-job"),
            dcc.Interval(id="md-poll", interval=POLL, disabled=True),
            html.Div(id="md-shown", role="status"),
            before(made),
        ],
        className="card pad teaching",
    )


def before(made: Sequence[wire.Derivation]) -> Component | None:
    """What was made of it, or is being made."""
    if not made:
        return None
    items = [
        html.Li(
            [
                dcc.Link(d.result_name, href=href(f"/models/{d.result}")) if d.result else html.Span(changed(d.change)),
                html.Span(f" {d.state} · {when(d.created)}", className="quiet num"),
            ]
        )
        for d in made
    ]
    return html.Details([html.Summary(f"Made of it: {len(made)}"), html.Ul(items)], className="disclosure", open=True)


def changed(change: wire.Change) -> str:
    """What was asked for, in words."""
    if change.add_class is not None:
        return f"with {change.add_class}"
    numbers = ", ".join(str(j) for j in change.remove or change.forget or ())
    return f"without prototypes {numbers}" if change.remove else f"prototypes {numbers} anew"


@callback(
    Output("md-job", "data"),
    Output("md-shown", "children"),
    Output("md-poll", "disabled"),
    Input("md-go", "n_clicks"),
    State("md-class", "value"),
    State("md-data", "value"),
    State("md-model", "data"),
    prevent_initial_call=True,
)
async def teach(clicks: int | None, title: str | None, dataset: str | None, model: str) -> tuple[Any, ...]:
    if not clicks:
        return (no_update,) * 3
    if not (title or "").strip() or not dataset:
        return no_update, html.P("Name the label and choose a data set first.", className="warning"), no_update
    try:
        made = await ask(calls.derive(model, dataset, add_class=title))
    except FanlightError as e:
        return no_update, html.P(" ".join(filter(None, (e.message, e.hint))), className="warning"), no_update
    return made.id, shown(made), False


@callback(
    Output("md-shown", "children", allow_duplicate=True),
    Output("md-poll", "disabled", allow_duplicate=True),
    Input("md-poll", "n_intervals"),
    State("md-job", "data"),
    prevent_initial_call=True,
)
async def watch(ticks: int, job: str | None) -> tuple[Any, ...]:
    return await follow(ticks, job)  # type: ignore[no-any-return]
