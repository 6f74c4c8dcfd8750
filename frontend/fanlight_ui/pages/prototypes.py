"""Prototypes `/e/{id}/prototypes`: this part looks like that part, and what if it did not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import dash
from dash import ClientsideFunction, Input, Output, clientside_callback, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.errors import Conflict, NotFound
from fanlight_ui import changes, derive_panel, errors, known, prototypes as parts, workbench
from fanlight_ui.session import ask

# `order`: before the page of the record, whose address begins alike
dash.register_page(__name__, path_template="/e/<id>/prototypes", title="This looks like that · Fanlight", order=0)

SHARE_DAYS = 30


@errors.page
async def layout(id: str, **query: str) -> Component:
    record = await ask(calls.explanation(id))
    if record.state != "succeeded":
        raise Conflict(
            f"This explanation is {record.state}.", code="not_finished", hint="Open its record to follow it."
        )
    ref = next((a for a in record.artifacts if a.kind == parts.KIND), None)
    if ref is None:
        raise NotFound("This explanation is none by prototypes.", hint="Open its record.")
    told, model, infos, system, datasets = await asyncio.gather(
        ask(calls.describe(ref.digest)),
        known.or_none(calls.model(record.model)),
        ask(calls.explainers()),
        ask(calls.system()),
        ask(calls.datasets()),
    )
    stored = parts.own(record.edits)
    edits = wanted(query.get("edits"), stored)
    shown = parts.Shown(
        record,
        told,
        workbench.classes(model) if model else (),
        edits,
        asked=edits != stored,
        info=next((i for i in infos if i.name == record.explainer), None),
    )
    gone = derive_panel.panel(record, datasets) if model else None
    return html.Main(
        [
            dcc.Store(id="ex-id", data=id),
            dcc.Store(id="pt-data", data=parts.state(shown)),
            dcc.Store(id="pt-ready"),
            dcc.Store(id="pt-asked"),
            html.Div([parts.head(shown), parts.body(shown, gone)], id="pt-page"),
            changes.share_dialog(int(system.settings.get("share_days", SHARE_DAYS))),
        ],
        className="page",
    )


def wanted(text: str | None, stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The edits that an address names; those that are stored where it names none, or nothing that could be one."""
    try:
        found = json.loads(text) if text is not None else stored
    except (ValueError, RecursionError):
        return stored
    fits = isinstance(found, list) and all(
        isinstance(e, dict) and len(e) == 1 and set(e) <= set(parts.OWN) for e in found
    )
    return found if fits else stored


clientside_callback(ClientsideFunction("prototypes", "start"), Output("pt-ready", "data"), Input("pt-data", "data"))
clientside_callback(
    ClientsideFunction("prototypes", "why"),
    Output("pt-asked", "data"),
    Input("pt-why", "value"),
    prevent_initial_call=True,
)
