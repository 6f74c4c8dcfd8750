"""Sweep `/sweeps/{id}`: how far it is, and what it found so far."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import (
    ClientsideFunction,
    Input,
    Output,
    State,
    callback,
    clientside_callback,
    dcc,
    html,
    no_update,
    set_props,
)
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import errors, study_panel, sweeps, trial_panel
from fanlight_ui.session import ask

dash.register_page(__name__, path_template="/sweeps/<id>", title="Sweep · Fanlight")

WAIT = 3.0
"""Seconds for which a page waits for a summary that is being made, when it is opened."""
POLL = 1500
WITHOUT = 50


@errors.page
async def layout(id: str, trial: str | None = None, **address: str) -> Component:
    asked = await ask(calls.sweep(id))
    if asked.request.source.words is not None:
        return await study_panel.page(asked, address)
    found, summary, without = await _asked(id, WAIT)
    return html.Main(
        [
            dcc.Store(id="sw-id", data=id),
            dcc.Store(id="sw-shown", data=_shown(found, summary)),
            dcc.Store(id="sw-opened"),
            dcc.Interval(id="sw-poll", interval=POLL, disabled=_still(found, summary)),
            html.Div(sweeps.head(found), id="sw-head"),
            html.Section(sweeps.progress(found), id="sw-progress", className="card pad job"),
            html.Div(await trial_panel.panel(found, trial), id="sw-trial"),
            html.Div(await _body(found, summary, without), id="sw-summary"),
        ],
        className="page sweep",
    )


async def _asked(id: str, wait: float) -> tuple[wire.Sweep, wire.SweepSummary, wire.Page[wire.SweepItem]]:
    return await asyncio.gather(
        ask(calls.sweep(id)),
        ask(calls.sweep_summary(id, wait=wait)),
        ask(calls.sweep_items(id, state="failed,skipped", limit=WITHOUT)),
    )


async def _body(found: wire.Sweep, summary: wire.SweepSummary, without: wire.Page[wire.SweepItem]) -> list[Any]:
    wanted = list(dict.fromkeys([*summary.most[:4], *summary.least[:4], *summary.confident[:4]]))
    known = await asyncio.gather(*(_or_none(i) for i in wanted))
    return [
        part
        for part in sweeps.summary(found, summary, {e.id: e for e in known if e is not None}, without)
        if part is not None
    ]


async def _or_none(id: str) -> wire.Explanation | None:
    """None where it was deleted meanwhile."""
    try:
        return await ask(calls.explanation(id))
    except FanlightError as e:
        if e.status != 404:
            raise
        return None


def _shown(found: wire.Sweep, summary: wire.SweepSummary) -> dict[str, Any]:
    return {"state": found.state, "content": summary.content, "made": summary.clusters is not None}


def _still(found: wire.Sweep, summary: wire.SweepSummary) -> bool:
    """Nothing is going to change."""
    return found.state not in sweeps.ACTIVE and summary.current


@callback(
    Output("sw-progress", "children"),
    Output("sw-head", "children"),
    Output("sw-summary", "children"),
    Output("sw-shown", "data"),
    Output("sw-poll", "disabled"),
    Input("sw-poll", "n_intervals"),
    State("sw-id", "data"),
    State("sw-shown", "data"),
    prevent_initial_call=True,
)
async def follow(_ticks: int, id: str, shown: dict[str, Any]) -> tuple[Any, ...]:
    """Moves the bar; the summary only where there is a newer one."""
    if shown.get("words"):
        return await study_panel.follow(id, shown)
    found, summary, without = await _asked(id, 0)
    now = _shown(found, summary)
    head = sweeps.head(found) if now["state"] != shown["state"] else no_update
    fresh = (now["content"], now["made"]) != (shown["content"], shown["made"])
    keep = fresh and shown["made"] and not now["made"]  # groups on the page are worth more than none
    body = await _body(found, summary, without) if fresh and not keep else no_update
    return sweeps.progress(found), head, body, shown if keep else now, _still(found, summary)


@callback(Input("sw-turn", "n_clicks"), State("sw-id", "data"), State("sw-shown", "data"), prevent_initial_call=True)
async def turn(clicks: int | None, id: str, shown: dict[str, Any]) -> None:
    if not clicks:
        return
    call = calls.pause_sweep(id) if shown["state"] == "running" else calls.resume_sweep(id)
    found = await ask(call)
    _show(found, shown)


@callback(Input("sw-cancel", "n_clicks"), State("sw-id", "data"), State("sw-shown", "data"), prevent_initial_call=True)
async def cancel(clicks: int | None, id: str, shown: dict[str, Any]) -> None:
    if not clicks:
        return
    found = await ask(calls.cancel_sweep(id))
    errors.toast("Cancelled. What was finished stays in the gallery.")
    _show(found, shown)


def _show(found: wire.Sweep, shown: dict[str, Any]) -> None:
    set_props("sw-head", {"children": sweeps.head(found)})
    set_props("sw-progress", {"children": sweeps.progress(found)})
    set_props("sw-shown", {"data": {**shown, "state": found.state}})
    set_props("sw-poll", {"disabled": False})


clientside_callback(
    ClientsideFunction("sweeps", "open"),
    Output("sw-opened", "data"),
    Input("sw-plot", "clickData"),
    prevent_initial_call=True,
)
