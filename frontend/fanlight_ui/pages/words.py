"""Words `/e/{id}/words`: which word of the prompt put what where, what two say together, and what if one went."""

from __future__ import annotations

import asyncio

import dash
from dash import ClientsideFunction, Input, Output, clientside_callback, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight_ui import changes, editing, errors, known, words as parts
from fanlight_ui.session import ask

# `order`: before the page of the record, whose address begins alike
dash.register_page(__name__, path_template="/e/<id>/words", title="Which word put what where? · Fanlight", order=0)


@errors.page
async def layout(id: str, **query: str) -> Component:
    record, ref = await editing.finished(id, parts.KIND)
    told, model, infos, before, prompt, system = await asyncio.gather(
        ask(calls.describe(ref.digest)),
        known.or_none(calls.model(record.model)),
        ask(calls.explainers()),
        known.or_none(calls.explanation(record.parent) if record.parent else None),
        known.or_none(calls.input(record.input)),
        ask(calls.system()),
    )
    stored = editing.among(record.edits, parts.OWN)
    edits = editing.wanted(query.get("edits"), stored, parts.OWN)
    info = next((i for i in infos if i.name == record.explainer), None)
    shown = parts.Shown(record, told, prompt, edits, edits != stored, info, model, before)
    return html.Main(
        [
            dcc.Store(id="ex-id", data=id),
            dcc.Store(id="ex-again"),
            dcc.Interval(id="ex-again-poll", interval=1000, disabled=True),
            dcc.Store(id="wd-data", data=parts.state(shown)),
            dcc.Store(id="wd-ready"),
            dcc.Store(id={"type": "shared-view", "page": "words"}),
            html.Div([parts.head(shown), parts.body(shown)], id="wd-page"),
            changes.share_dialog(editing.share_days(system)),
        ],
        className="page",
    )


clientside_callback(ClientsideFunction("words", "start"), Output("wd-ready", "data"), Input("wd-data", "data"))
