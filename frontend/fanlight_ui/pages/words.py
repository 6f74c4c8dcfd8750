"""Words `/e/{id}/words`: which word of the prompt put what where, what two say together, and what if one went."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import dash
from dash import ClientsideFunction, Input, Output, clientside_callback, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.errors import Conflict, NotFound
from fanlight_ui import changes, errors, known, words as parts
from fanlight_ui.session import ask

# `order`: before the page of the record, whose address begins alike
dash.register_page(__name__, path_template="/e/<id>/words", title="Which word put what where? · Fanlight", order=0)

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
        raise NotFound("This explanation is none by words.", hint="Open its record.")
    told, model, infos, before, prompt, system = await asyncio.gather(
        ask(calls.describe(ref.digest)),
        known.or_none(calls.model(record.model)),
        ask(calls.explainers()),
        known.or_none(calls.explanation(record.parent) if record.parent else None),
        known.or_none(calls.input(record.input)),
        ask(calls.system()),
    )
    stored = parts.own(record.edits)
    edits = wanted(query.get("edits"), stored)
    info = next((i for i in infos if i.name == record.explainer), None)
    shown = parts.Shown(record, told, prompt, edits, edits != stored, info, model, before)
    return html.Main(
        [
            dcc.Store(id="ex-id", data=id),
            dcc.Store(id="ex-again"),
            dcc.Interval(id="ex-again-poll", interval=1000, disabled=True),
            dcc.Store(id="wd-data", data=parts.state(shown)),
            dcc.Store(id="wd-ready"),
            html.Div([parts.head(shown), parts.body(shown)], id="wd-page"),
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


clientside_callback(ClientsideFunction("words", "start"), Output("wd-ready", "data"), Input("wd-data", "data"))
