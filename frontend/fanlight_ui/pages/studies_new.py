"""New study `/studies/new`: two lists of words against each other, for a model that draws."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import Input, Output, State, callback, html, no_update
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import errors, studies, study_form, sweep_form
from fanlight_ui.session import ask, go

dash.register_page(__name__, path="/studies/new", title="New study · Fanlight")


@errors.page
async def layout(**address: str) -> Component:
    models, infos = await asyncio.gather(ask(calls.models()), ask(calls.explainers()))
    every = await asyncio.gather(*(ask(calls.model(m.id)) for m in models if m.takes == "prompt"))
    fits = [m for m in every if study_form.fitting(m, infos)]
    head = html.Div(html.H1("New study"), className="head")
    if not fits:
        none = "No model is registered that draws from words and that a method can be asked about by pairs of words."
        return html.Main([head, html.P(none)], className="page narrow")
    given = {k: v for k, v in address.items() if k in study_form.GIVEN}
    return html.Main(
        [head, html.P(studies.HELP, className="quiet"), study_form.form(fits, infos, given)], className="page narrow"
    )


@callback(
    Output("stn-method", "data"),
    Output("stn-method", "value"),
    Input("stn-model", "value"),
    State("stn-method", "value"),
    prevent_initial_call=True,
)
async def model_chosen(id: str, method: str | None) -> tuple[Any, ...]:
    model, infos = await asyncio.gather(ask(calls.model(id)), ask(calls.explainers()))
    methods = study_form.fitting(model, infos)
    names = [m["value"] for m in methods]
    return methods, method if method in names else (names[0] if names else None)


@callback(Output("stn-params", "children"), Input("stn-method", "value"))
async def method_chosen(name: str | None) -> Component:
    return sweep_form.params(await _info(name))


@callback(
    Output("stn-forecast", "children"),
    Output("stn-prompt", "children"),
    Input("stn-method", "value"),
    Input("stn-template", "value"),
    Input("stn-first", "value"),
    Input("stn-second", "value"),
    Input("stn-seeds", "value"),
)
async def foretell(
    method: str | None, template: str | None, first: str | None, second: str | None, seeds: Any
) -> tuple[str, str]:
    """From the method's own figure at its defaults and what this server measured of itself."""
    info = await _info(method)
    one, other = study_form.listed(first), study_form.listed(second)
    many = len(one) * len(other) * (sweep_form.whole(seeds) or 0)
    said = study_form.foretold(info.cost, many) if info else ""
    return said, study_form.example(template, one, other)


@callback(
    Output("stn-said", "children"),
    Input("stn-go", "n_clicks"),
    State("stn-model", "value"),
    State("stn-method", "value"),
    State("stn-template", "value"),
    State("stn-first", "value"),
    State("stn-second", "value"),
    State("stn-seeds", "value"),
    State("stn-from", "value"),
    State("stn-name", "value"),
    *sweep_form.PARAMS,
    running=[(Output("stn-go", "disabled"), True, False)],
    prevent_initial_call=True,
)
async def start(
    clicks: int | None, model: str, method: str, template: str, first: str, second: str, seeds: Any, begin: Any,
    name: str, values: list[Any], ids: list[Any], flags: list[Any], flag_ids: list[Any],
) -> Any:  # fmt: skip
    if not clicks:
        return no_update
    info = await _info(method)
    params = sweep_form.differing(info, values, ids, flags, flag_ids)
    try:
        found = await ask(
            calls.start_study(
                model,
                method,
                study_form.listed(first),
                study_form.listed(second),
                template=template,
                seeds=study_form.seeds(seeds, begin),
                params=params,
                name=(name or "").strip(),
            )
        )
    except FanlightError as e:
        return errors.notice(e)
    go(f"/sweeps/{found.id}")
    return None


async def _info(name: str | None) -> wire.ExplainerInfo | None:
    return next((i for i in await ask(calls.explainers()) if i.name == name), None)
