"""Concepts `/e/{id}/concepts`: correct what a concept bottleneck says it sees, and see at once what follows."""

from __future__ import annotations

from typing import Any

import dash
from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import Conflict
from fanlight_ui import changes, concepts, editing, errors, known
from fanlight_ui.concepts import KIND, Shown
from fanlight_ui.session import ask

dash.register_page(__name__, path_template="/e/<id>/concepts", title="Concepts · Fanlight")

ANCESTORS = 20


@errors.page
async def layout(id: str, **_query: str) -> Component:
    record = await ask(calls.explanation(id))
    ref = next((a for a in record.artifacts if a.kind == KIND), None)
    if ref is None:
        raise Conflict(
            f"This explanation is {record.state}."
            if record.state != "succeeded"
            else "This explanation is none by concepts.",
            code="not_finished" if record.state != "succeeded" else "not_editable",
            hint="Open its record, or ask a concept bottleneck for a prediction by concepts.",
        )
    told = await ask(calls.describe(ref.digest))
    shown = Shown(record, ref, told, await _methods(record), concepts.log_of(await _related(record)))
    system = await ask(calls.system())
    return html.Main(
        [
            dcc.Store(id="ex-id", data=id),
            dcc.Store(id="ex-again"),
            dcc.Interval(id="ex-again-poll", interval=1000, disabled=True),
            html.Div([concepts.head(shown), concepts.body(shown)], id="co-page", **concepts.data(shown)),
            changes.share_dialog(editing.share_days(system)),
        ],
        className="page",
    )


async def _methods(record: wire.Explanation) -> list[tuple[str, str]]:
    """What maps a concept to the picture, in the order of the registry; nothing where the model is gone, or a part of the picture was hidden."""
    model = await known.or_none(calls.model(record.model))
    if model is None or any("mask_region" in e for e in record.edits):
        return []
    able = {a.name for a in model.explainers if a.available}
    return [(i.name, i.title) for i in await ask(calls.explainers()) if i.name in able and "image-map" in i.returns]


async def _related(record: wire.Explanation) -> list[wire.Explanation]:
    """The record, what it came of, and what else was saved of that."""
    found, root = [record], record
    for _ in range(ANCESTORS):
        parent: Any = await known.or_none(calls.explanation(root.parent)) if root.parent else None
        if parent is None:
            break
        found.append(parent)
        root = parent
    for of in dict.fromkeys((root.id, record.id)):
        found += (await ask(calls.explanations(parent=of, limit=24))).items
    return found
