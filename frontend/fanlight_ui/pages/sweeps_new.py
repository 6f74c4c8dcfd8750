"""New sweep `/sweeps/new`: what to explain, by which method, of which pictures."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import Input, Output, State, callback, html, no_update
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import errors, sweep_form, sweeps, workbench
from fanlight_ui.query import Query
from fanlight_ui.session import ask, go

# Before the page of one sweep, whose address has room for any name.
dash.register_page(__name__, path="/sweeps/new", title="New sweep · Fanlight", order=1)


@errors.page
async def layout(**address: str) -> Component:
    models, infos, datasets = await asyncio.gather(ask(calls.models()), ask(calls.explainers()), ask(calls.datasets()))
    models = [m for m in models if m.takes == "image"]
    head = html.Div(html.H1("New sweep"), className="head")
    if not models:
        return html.Main([head, html.P("No model is registered yet.")], className="page narrow")
    gallery, found = None, None
    if address.get("gallery"):
        given = Query.of(address).given
        gallery = {k: v for k, v in given.items() if k not in ("cursor", "view")}
        found = (await ask(calls.explanations(**Query.of(gallery).filters, limit=1))).total
    chosen = {k: v for k, v in address.items() if k in ("model", "explainer", "dataset", "label", "q")}
    return html.Main(
        [
            head,
            html.P(sweeps.HELP, className="quiet"),
            sweep_form.form(models, infos, datasets, chosen, gallery, found),
        ],
        className="page narrow",
    )


@callback(
    Output("swn-method", "data"),
    Output("swn-method", "value"),
    Output("swn-class", "data"),
    Output("swn-class", "value"),
    Input("swn-model", "value"),
    State("swn-method", "value"),
)
async def model_chosen(id: str, method: str | None) -> tuple[Any, ...]:
    model, infos = await asyncio.gather(ask(calls.model(id)), ask(calls.explainers()))
    methods = sweep_form.fitting(model, infos)
    kept = method if method in [m["value"] for m in methods] else (methods[0]["value"] if methods else None)
    return methods, kept, workbench.classes(model), None


@callback(Output("swn-params", "children"), Input("swn-method", "value"))
async def method_chosen(name: str | None) -> Component:
    return sweep_form.params(await _info(name))


@callback(
    Output("swn-label", "data"),
    Output("swn-label", "value"),
    Input("swn-dataset", "value"),
    State("swn-label", "value"),
)
async def dataset_chosen(id: str | None, label: str | None) -> tuple[Any, ...]:
    if not id:
        return [], None
    page = await ask(calls.samples(id, limit=1))
    labels = [{"value": f.value, "label": f"{f.value} · {f.count:,}"} for f in page.facets.get("label", [])]
    return labels, label if label in [v["value"] for v in labels] else None


@callback(
    Output("swn-class-part", "hidden"),
    Output("swn-count-part", "hidden"),
    Output("swn-seed-part", "hidden"),
    Input("swn-rule", "value"),
    Input("swn-amount", "value"),
)
async def shown(rule: str, amount: str) -> tuple[bool, bool, bool]:
    return rule != "class", amount == "all", amount != "sample"


@callback(
    Output("swn-forecast", "children"),
    Input("swn-method", "value"),
    Input("swn-dataset", "value"),
    Input("swn-label", "value"),
    Input("swn-q", "value"),
    Input("swn-amount", "value"),
    Input("swn-count", "value"),
    State("swn-gallery", "data"),
)
async def foretell(
    method: str | None, dataset: str | None, label: str | None, q: str | None, amount: str, count: Any, gallery: Any
) -> str:
    """From the method's own figure at its defaults and what this server measured of itself."""
    info = await _info(method)
    if info is None:
        return ""
    if gallery is not None:
        there = (await ask(calls.explanations(**Query.of(gallery).filters, limit=1))).total
    elif dataset:
        there = (await ask(calls.samples(dataset, limit=1, q=q or None, label=label or None))).total
    else:
        return ""
    system = await ask(calls.system())
    wanted = there if amount == "all" else min(there, sweep_form.whole(count) or 0)
    return sweep_form.foretold(info.cost, wanted, system.settings.get("throughput"))


@callback(
    Output("swn-said", "children"),
    Input("swn-go", "n_clicks"),
    State("swn-model", "value"),
    State("swn-method", "value"),
    State("swn-gallery", "data"),
    State("swn-dataset", "value"),
    State("swn-label", "value"),
    State("swn-q", "value"),
    State("swn-amount", "value"),
    State("swn-count", "value"),
    State("swn-seed", "value"),
    State("swn-rule", "value"),
    State("swn-class", "value"),
    State("swn-name", "value"),
    *sweep_form.PARAMS,
    running=[(Output("swn-go", "disabled"), True, False)],
    prevent_initial_call=True,
)
async def start(
    clicks: int | None, model: str, method: str, gallery: Any, dataset: str, label: str, q: str, amount: str,
    count: Any, seed: Any, rule: str, chosen: str | None, name: str, values: list[Any], ids: list[Any],
    flags: list[Any], flag_ids: list[Any],
) -> Any:  # fmt: skip
    if not clicks:
        return no_update
    info = await _info(method)
    params = sweep_form.differing(info, values, ids, flags, flag_ids)
    options: dict[str, Any] = {"rule": rule, "params": params, "name": (name or "").strip()}
    if rule == "class":
        options["target"] = sweep_form.whole(chosen)
    try:
        source = sweep_form.source(gallery, dataset, label, q, amount, count, seed)
        found = await ask(calls.start_sweep(model, method, **source, **options))
    except FanlightError as e:
        return errors.notice(e)
    go(f"/sweeps/{found.id}")
    return None


async def _info(name: str | None) -> wire.ExplainerInfo | None:
    return next((i for i in await ask(calls.explainers()) if i.name == name), None)
