"""The panel "Apply a rule to all of these" of the page of a sweep: what it asks the server for, and its callbacks."""

from __future__ import annotations

import asyncio
from typing import Any

from dash import (
    ALL,
    ClientsideFunction,
    Input,
    Output,
    State,
    callback,
    clientside_callback,
    ctx,
    dcc,
    html,
    no_update,
)
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import trials
from fanlight_ui.known import or_none
from fanlight_ui.session import ask

POLL = 700


async def panel(sweep: wire.Sweep, wanted: str | None) -> Component | None:
    """None for a method whose results cannot be changed for many pictures at once. Args: wanted: a trial to show; else the newest."""
    infos = await ask(calls.explainers())
    info = next((i for i in infos if i.name == sweep.explainer), None)
    if info is None or not info.general:
        return None
    every, model = await asyncio.gather(ask(calls.trials(sweep.id)), or_none(calls.model(sweep.model)))
    shown = next((t for t in every if t.id == wanted), every[0] if every else None)
    concepts = None if model is None else model.concepts
    done = sweep.counts["succeeded"] + sweep.counts["measuring"]
    return html.Section(
        [
            html.H2("Apply a rule to all of these"),
            html.P(trials.HELP, className="quiet"),
            dcc.Store(id="tr-concepts", data=concepts),
            dcc.Store(id="tr-open", data=shown.id if shown else None),
            dcc.Store(id="tr-addressed"),
            dcc.Interval(id="tr-poll", interval=POLL, disabled=shown is None or shown.state != "running"),
            trials.form(info.general, concepts, (model.classes or ()) if model else (), done)
            if model is not None
            else html.P("The model is no longer registered, so nothing further can be tried.", className="quiet"),
            html.Div(await _result(shown) if shown else [], id="tr-result", className="trial-result"),
            html.Div(trials.earlier(every, shown.id if shown else None), id="tr-earlier"),
        ],
        className="card pad trial",
    )


async def _result(t: wire.Trial) -> list[Component | None]:
    summary, corrected, spoiled, other = await asyncio.gather(
        ask(calls.trial_summary(t.id)),
        *(ask(calls.trial_items(t.id, move=m, limit=trials.SHOWN)) for m in ("corrected", "spoiled", "other")),
    )
    return trials.result(t, summary, corrected, spoiled, other)


@callback(
    *[Output(f"tr-{p}-part", "hidden") for p in trials.PARTS], Input("tr-kind", "value"), Input("tr-value", "value")
)
async def fields(kind: str, value: str | None) -> list[bool]:
    return trials.hidden(kind, value)


@callback(
    Output("tr-edits", "data"),
    Output("tr-chips", "children"),
    Output("tr-concept", "value"),
    Output("tr-said", "children", allow_duplicate=True),
    Input("tr-add", "n_clicks"),
    Input({"type": "tr-drop", "n": ALL}, "n_clicks"),
    State("tr-edits", "data"),
    State("tr-concepts", "data"),
    State("tr-kind", "value"),
    *[State(f"tr-{p}", "value") for p in trials.PARTS],
    prevent_initial_call=True,
)
async def rule(
    _add: int | None, drops: list[int | None], edits: list[Any], concepts: list[str] | None, kind: str, *given: Any
) -> tuple[Any, ...]:
    """Another edit of the rule, or one less."""
    by = ctx.triggered_id
    if isinstance(by, dict):
        if not any(drops):
            return (no_update,) * 4
        edits = [e for n, e in enumerate(edits) if n != by["n"]]
    else:
        more = trials.edit(kind, dict(zip(trials.PARTS, given, strict=True)))
        if more is None:
            return no_update, no_update, no_update, "Say first what is changed."
        edits = [*edits, more]
    return edits, trials.chips(edits, concepts), None, ""


@callback(
    Output("tr-open", "data"),
    Output("tr-result", "children"),
    Output("tr-earlier", "children"),
    Output("tr-poll", "disabled"),
    Output("tr-said", "children"),
    Input("tr-apply", "n_clicks"),
    State("sw-id", "data"),
    State("tr-edits", "data"),
    State("tr-kind", "value"),
    State("tr-label", "value"),
    State("tr-predicted", "value"),
    State("tr-outcome", "value"),
    *[State(f"tr-{p}", "value") for p in trials.PARTS],
    prevent_initial_call=True,
)
async def apply(
    clicks: int | None,
    sweep: str,
    edits: list[Any],
    kind: str,
    label: str | None,
    predicted: str | None,
    outcome: str | None,
    *given: Any,
) -> tuple[Any, ...]:
    """The edits of the rule, with what the controls say now."""
    if not clicks:
        return (no_update,) * 5
    last = trials.edit(kind, dict(zip(trials.PARTS, given, strict=True)))
    whole = [*edits, *([last] if last is not None and last not in edits else [])]
    if not whole:
        return *(no_update,) * 4, "Say first what is changed."
    where = {k: v for k, v in {"label": label, "predicted": predicted, "outcome": outcome}.items() if v}
    try:
        made = await ask(calls.start_trial(sweep, whole, where))
    except FanlightError as e:
        return *(no_update,) * 4, " ".join(filter(None, (e.message, e.hint)))
    every = await ask(calls.trials(sweep))
    return made.id, await _result(made), trials.earlier(every, made.id), False, ""


@callback(
    Output("tr-result", "children", allow_duplicate=True),
    Output("tr-poll", "disabled", allow_duplicate=True),
    Input("tr-poll", "n_intervals"),
    State("tr-open", "data"),
    prevent_initial_call=True,
)
async def follow(_ticks: int, name: str | None) -> tuple[Any, ...]:
    if not name:
        return no_update, True
    found = await ask(calls.trial(name))
    return await _result(found), found.state != "running"


@callback(
    Output("tr-result", "children", allow_duplicate=True),
    Input("tr-cancel", "n_clicks"),
    State("tr-open", "data"),
    prevent_initial_call=True,
)
async def cancel(clicks: int | None, name: str) -> Any:
    return await _result(await ask(calls.cancel_trial(name))) if clicks else no_update


@callback(
    Output("tr-open", "data", allow_duplicate=True),
    Output("tr-result", "children", allow_duplicate=True),
    Output("tr-earlier", "children", allow_duplicate=True),
    Input("tr-forget", "n_clicks"),
    State("tr-open", "data"),
    State("sw-id", "data"),
    prevent_initial_call=True,
)
async def forget(clicks: int | None, name: str, sweep: str) -> tuple[Any, ...]:
    if not clicks:
        return (no_update,) * 3
    await ask(calls.delete_trial(name))
    every = await ask(calls.trials(sweep))
    return None, [html.P("Forgotten. The explanations stay.", className="quiet")], trials.earlier(every, None)


clientside_callback(
    ClientsideFunction("sweeps", "addressed"),
    Output("tr-addressed", "data"),
    Input("tr-open", "data"),
    prevent_initial_call=True,
)
