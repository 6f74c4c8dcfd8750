"""Prototypes `/e/{id}/prototypes`: this part looks like that part, and what if it did not."""

from __future__ import annotations

import asyncio

import dash
from dash import ClientsideFunction, Input, Output, clientside_callback, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight_ui import changes, derive_panel, editing, errors, known, prototypes as parts, workbench
from fanlight_ui.session import ask

# `order`: before the page of the record, whose address begins alike
dash.register_page(__name__, path_template="/e/<id>/prototypes", title="This looks like that · Fanlight", order=0)


@errors.page
async def layout(id: str, **query: str) -> Component:
    record, ref = await editing.finished(id, parts.KIND)
    told, model, infos, system, datasets = await asyncio.gather(
        ask(calls.describe(ref.digest)),
        known.or_none(calls.model(record.model)),
        ask(calls.explainers()),
        ask(calls.system()),
        ask(calls.datasets()),
    )
    stored = editing.among(record.edits, parts.OWN)
    edits = editing.wanted(query.get("edits"), stored, parts.OWN)
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
            changes.share_dialog(editing.share_days(system)),
        ],
        className="page",
    )


clientside_callback(ClientsideFunction("prototypes", "start"), Output("pt-ready", "data"), Input("pt-data", "data"))
clientside_callback(
    ClientsideFunction("prototypes", "why"),
    Output("pt-asked", "data"),
    Input("pt-why", "value"),
    prevent_initial_call=True,
)
