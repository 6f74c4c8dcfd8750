"""The page of a sweep over two lists of words: what it asks the server for, and its callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dash import Input, Output, State, callback, dcc, html, no_update
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight_ui import studies, sweeps
from fanlight_ui.known import or_none
from fanlight_ui.session import ask

POLL = 1500
WITHOUT = 50


async def page(found: wire.Sweep, address: Mapping[str, str]) -> Component:
    view = studies.View.of(address)
    study, without = await asyncio.gather(_study(found.id, view), _without(found.id))
    return html.Main(
        [
            dcc.Store(id="sw-id", data=found.id),
            dcc.Store(id="sw-shown", data=shown(found)),
            dcc.Store(id="st-view", data=view.data()),
            dcc.Store(id="st-at", data=view.data()),
            dcc.Interval(id="sw-poll", interval=POLL, disabled=found.state not in sweeps.ACTIVE),
            html.Div(sweeps.head(found), id="sw-head"),
            html.Section(sweeps.progress(found), id="sw-progress", className="card pad job"),
            html.Section(
                [studies.controls(study, view), html.Div(studies.table(study, view), id="st-table")],
                className="card pad st-study",
                **{"aria-label": "Every pair of words"},
            ),
            html.Section(
                await _behind(study, view),
                id="st-cell",
                className="of-sweep",
                **{"aria-live": "polite", "aria-label": "Pictures of a pair"},
            ),
            html.Div(sweeps.missing(without), id="sw-summary"),
        ],
        className="page sweep",
    )


def shown(found: wire.Sweep) -> dict[str, Any]:
    """As of other sweeps; `words` says that it is of words."""
    return {"state": found.state, "content": sum(_ended(found)), "made": True, "words": True}


def _ended(found: wire.Sweep) -> list[int]:
    return [found.counts.get(state, 0) for state in ("measuring", "succeeded", "failed", "skipped")]


async def _study(id: str, view: studies.View) -> wire.Study:
    """An address may name a column that there is not: the first stands for it."""
    known = await ask(calls.study(id, rule=view.rule))
    if view.column == known.column or view.column not in [c.name for c in known.columns]:
        return known
    return await ask(calls.study(id, column=view.column, rule=view.rule))


async def _without(id: str) -> wire.Page[wire.SweepItem]:
    return await ask(calls.sweep_items(id, state="failed,skipped", limit=WITHOUT))


async def _behind(study: wire.Study, view: studies.View) -> list[Component]:
    """The pictures of the chosen cell: of each seed one, in the order of `wire.WordLists.at`."""
    if view.cell is None or view.cell[0] >= len(study.first) or view.cell[1] >= len(study.second):
        return studies.behind(study, studies.View(), [], 0)
    pairs, place = len(study.first) * len(study.second), view.cell[0] * len(study.second) + view.cell[1]
    wanted = [n * pairs + place for n in range(min(len(study.seeds), studies.MOST_SHOWN))]
    pages = await asyncio.gather(
        *(ask(calls.sweep_items(study.sweep, cursor=str(p - 1) if p else None, limit=1)) for p in wanted)
    )
    ids = [page.items[0].explanation for page in pages if page.items]
    records = await asyncio.gather(*(or_none(calls.explanation(i)) for i in ids if i is not None))
    there = [r for r in records if r is not None]
    return studies.behind(study, view, there, len(wanted) - len(there))


async def follow(id: str, before: Mapping[str, Any]) -> tuple[Any, ...]:
    """Progress, head, what is without a result, what the page remembers, whether it is over. A new `sw-shown` draws the table."""
    found = await ask(calls.sweep(id))
    now = shown(found)
    fresh = now["content"] != before["content"]
    head = sweeps.head(found) if now["state"] != before["state"] else no_update
    missing = sweeps.missing(await _without(id)) if fresh else no_update
    return (
        sweeps.progress(found),
        head,
        missing,
        now if fresh or head is not no_update else no_update,
        found.state not in sweeps.ACTIVE,
    )


@callback(
    Output("st-table", "children"),
    Input("st-view", "data"),
    Input("sw-shown", "data"),
    State("st-at", "data"),
    State("sw-id", "data"),
    prevent_initial_call=True,
)
async def show(view: dict[str, Any], _shown: Any, at: dict[str, Any], id: str) -> list[Component]:
    """Another number, rule or scale, or pictures that have come since."""
    wanted = studies.View.of({**view, "cell": at["cell"]})
    return studies.table(await _study(id, wanted), wanted)


@callback(
    Output("st-cell", "children"),
    Input("st-at", "data"),
    Input("sw-shown", "data"),
    State("sw-id", "data"),
    prevent_initial_call=True,
)
async def look(at: dict[str, Any], _shown: Any, id: str) -> list[Component]:
    """The pictures of another cell, or those that have come since."""
    wanted = studies.View.of(at)
    return await _behind(await _study(id, wanted), wanted)
