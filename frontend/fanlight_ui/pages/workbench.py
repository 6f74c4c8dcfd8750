"""Workbench `/explain`: choose a model, a picture and up to four methods, ask, and see the answers side by side on one scale."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import (
    ALL,
    MATCH,
    ClientsideFunction,
    Input,
    Output,
    State,
    callback,
    clientside_callback,
    ctx,
    no_update,
    set_props,
)
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import controls, errors, forecast, panels, subject, workbench as parts
from fanlight_ui.choice import MOST, Choice, wire_target
from fanlight_ui.session import ask
from fanlight_ui.views import base, prediction, trust

dash.register_page(__name__, path="/explain", title="Explain · Fanlight")

WAIT = 2.0
"""Seconds that the first answer may take before the panel shows the job instead."""


@errors.page
async def layout(**query: str) -> Component:
    choice = Choice.of(query)
    models, infos, datasets = await asyncio.gather(ask(calls.models()), ask(calls.explainers()), ask(calls.datasets()))
    chosen = await ask(calls.input(choice.input)) if choice.input else None
    fits = [m for m in models if chosen is None or m.takes == chosen.kind] or models
    name = choice.model or next((m.id for m in fits), None)
    model = await ask(calls.model(name)) if name else None
    prompt = None
    if chosen is not None and chosen.kind == "prompt":
        prompt, picture = chosen, chosen.picture
        chosen = await ask(calls.input(picture)) if picture else None
    found = await asyncio.gather(*(_panel(id, slot) for slot, id in enumerate(choice.results)))
    shelf = next((d.id for d in datasets if d.id == choice.dataset), datasets[0].id if datasets else None)
    samples = await ask(calls.samples(shelf, limit=subject.STRIP)) if shelf else None
    return parts.page(parts.Facts(choice, models, model, infos, datasets, shelf, samples, chosen, found, prompt))


async def _panel(id: str, slot: int) -> tuple[list[Component] | Component, dict[str, Any], wire.Explanation | None]:
    """What a panel shows for an explanation, what the page remembers of it, and the record where it is finished."""
    try:
        record = await ask(calls.explanation(id))
        if record.state == "succeeded":
            told = await panels.told_of(record)
            return panels.result(record, told, slot), panels.kept(record, told), record
        if record.state in wire.TERMINAL or record.job is None:
            return panels.ended(record), panels.kept(record, {}), record
        job = await ask(calls.job(record.job))
        return panels.waiting(job, slot), panels.kept(record, {}), record
    except FanlightError as e:
        return errors.notice(e), {"id": id, "state": "failed"}, None


# --- choosing

clientside_callback(
    ClientsideFunction("workbench", "choose_sample"),
    Output("wb-input", "data"),
    Output("wb-picture", "src"),
    Input({"type": "sample", "input": ALL, "name": ALL, "size": ALL}, "n_clicks"),
    prevent_initial_call=True,
)
clientside_callback(
    ClientsideFunction("workbench", "limit"),
    Output("wb-methods", "value"),
    Input("wb-methods", "value"),
    prevent_initial_call=True,
)
# The address follows everything that is set; writing it in place of the old one does not load the page again. What is shown of the
# picture goes with it, in one callback: each costs the browser some 20 ms, and nothing can be asked before both are there.
clientside_callback(
    ClientsideFunction("workbench", "address"),
    Output("wb-choice", "data"),
    Output("wb-picture", "hidden"),
    Output("wb-hint", "hidden"),
    Output("wb-about", "children"),
    Output("wb-go", "disabled"),
    Output("wb-drawn", "hidden"),
    Output("wb-drawn", "children"),
    Output("wb-ask", "hidden"),
    Output("wb-pick", "hidden"),
    Output("wb-classes", "hidden"),
    Input("wb-model", "value"),
    Input("wb-input", "data"),
    Input("wb-methods", "value"),
    Input("wb-target", "value"),
    Input("wb-minus", "value"),
    Input("wb-seed", "value"),
    Input("wb-dataset", "value"),
    Input({"type": "param", "scope": ALL, "name": ALL}, "value"),
    Input({"type": "flag", "scope": ALL, "name": ALL}, "checked"),
    Input({"type": "kept", "slot": ALL}, "data"),
    Input("wb-takes", "data"),
    Input("wb-prompt", "value"),
    Input("wb-source", "value"),
    Input("wb-prompted", "data"),
    State({"type": "param", "scope": ALL, "name": ALL}, "id"),
    State({"type": "flag", "scope": ALL, "name": ALL}, "id"),
    State("wb-defaults", "data"),
)


@callback(
    Output("wb-methods", "children"),
    Output("wb-reasons", "children"),
    Output("wb-target", "data"),
    Output("wb-minus", "data"),
    Output("wb-target", "value"),
    Output("wb-minus", "value"),
    Output("wb-methods", "value", allow_duplicate=True),
    Output("wb-takes", "data"),
    Output("wb-examples", "children"),
    Input("wb-model", "value"),
    State("wb-methods", "value"),
    prevent_initial_call=True,
)
async def choose_model(model: str, chosen: list[str]) -> tuple[Any, ...]:
    """Another model: other methods fit and other classes can be asked for."""
    found, infos = await asyncio.gather(ask(calls.model(model)), ask(calls.explainers()))
    classes, fits = parts.classes(found), parts.available(found)
    return (
        parts.chips(found, infos),
        parts.reasons(found, infos),
        classes,
        classes,
        None,
        None,
        [n for n in chosen if n in fits] or fits[:1],
        found.takes,
        subject.started(found.examples),
    )


@callback(
    Output("wb-forms", "children"),
    Output("wb-defaults", "data"),
    Input("wb-methods", "value"),
    State({"type": "param", "scope": ALL, "name": ALL}, "value"),
    State({"type": "param", "scope": ALL, "name": ALL}, "id"),
    State({"type": "flag", "scope": ALL, "name": ALL}, "checked"),
    State({"type": "flag", "scope": ALL, "name": ALL}, "id"),
    prevent_initial_call=True,
)
async def choose_methods(
    names: list[str], values: list[Any], ids: list[Any], flags: list[Any], flag_ids: list[Any]
) -> tuple[Any, ...]:
    """A form per chosen method; what was typed stays."""
    infos = {i.name: i for i in await ask(calls.explainers())}
    typed = controls.collect([*ids, *flag_ids], [*values, *flags])
    chosen = [infos[n] for n in names or [] if n in infos][:MOST]
    return parts.forms(chosen, typed), parts.defaults(chosen)


@callback(Output("wb-forecast", "children"), Input("wb-methods", "value"))
async def cost(names: list[str]) -> str:
    """What the chosen methods will cost at their default parameters, in passes and by this server's measured speed."""
    if not names:
        return "Choose at least one method."
    infos, system = await asyncio.gather(ask(calls.explainers()), ask(calls.system()))
    asked = sum(i.cost for i in infos if i.name in names)
    return f"{forecast.words(asked, system.settings.get('throughput'))}, with default parameters"


@callback(
    Output("wb-samples", "children"),
    Output("wb-cursor", "data"),
    Output("wb-more", "hidden"),
    Input("wb-dataset", "value"),
    Input("wb-more", "n_clicks"),
    Input("wb-find", "value"),
    State("wb-cursor", "data"),
    State("wb-samples", "children"),
    prevent_initial_call=True,
)
async def browse(
    dataset: str | None, _more: int, find: str | None, cursor: str | None, shown: list[Any]
) -> tuple[Any, ...]:
    """The strip of samples: of another data set, of a search, or further along."""
    if not dataset:
        return [], None, True
    further = ctx.triggered_id == "wb-more"
    page = await ask(calls.samples(dataset, limit=subject.STRIP, cursor=cursor if further else None, q=find or None))
    return [*(shown if further else []), *subject.thumbnails(page.items)], page.next_cursor, not page.next_cursor


# --- asking

# Panels stand before the server has answered. Each slot asks for itself with the click, so that a fast method never waits for a
# slow one; assets/workbench.js then sets its `run`, and with it the panel is drawn.
clientside_callback(
    ClientsideFunction("workbench", "start"),
    Output({"type": "slot", "slot": ALL}, "hidden"),
    Output({"type": "panel", "slot": ALL}, "children"),
    Output({"type": "kept", "slot": ALL}, "data", allow_duplicate=True),
    Output("wb-stage", "className"),
    Input("wb-go", "n_clicks"),
    State("wb-choice", "data"),
    State("wb-titles", "data"),
    State({"type": "kept", "slot": ALL}, "data"),
    prevent_initial_call=True,
)


@callback(
    Output({"type": "panel", "slot": MATCH}, "children", allow_duplicate=True),
    Output({"type": "kept", "slot": MATCH}, "data"),
    Input({"type": "run", "slot": MATCH}, "data"),
    State({"type": "run", "slot": MATCH}, "id"),
    prevent_initial_call=True,
)
async def explain(run: dict[str, Any] | None, id: dict[str, Any]) -> tuple[Any, ...]:
    """Shows the explanation that the browser has asked for, or the job that will bring it; asks itself where it got no answer."""
    if not run:
        return no_update, no_update
    slot, params = id["slot"], run.get("params") or {}
    if run.get("id"):
        shown, new, found = await _panel(run["id"], slot)
        if found is not None and (found.prediction or prediction.drawn(found)):
            _tell_prediction(found)
        return shown, new
    try:
        if params:
            schema = next((i.params for i in await ask(calls.explainers()) if i.name == run["explainer"]), {})
            params = controls.read(schema, params)
        target = wire_target(run.get("target"), run.get("minus"))
        answer = await ask(
            calls.explain(
                run["model"],
                run["input"],
                run["explainer"],
                target=target,
                params=params,
                seed=run.get("seed") or 0,
                wait=WAIT,
            )
        )
        if isinstance(answer, wire.Accepted):
            job = await ask(calls.job(answer.job))
            return panels.waiting(job, slot), {"id": answer.id, "job": answer.job, "state": job.state}
    except FanlightError as e:
        return errors.notice(e), {"id": None, "state": "failed"}
    if answer.state != "succeeded":
        return panels.ended(answer), panels.kept(answer, {})
    told = await panels.told_of(answer)
    _tell_prediction(answer)
    return panels.result(answer, told, slot), panels.kept(answer, told)


def _tell_prediction(record: wire.Explanation) -> None:
    """Title, prediction and the model's own crop of the picture, from whichever panel is first."""
    set_props("wb-prediction", {"children": prediction.of(record)})
    set_props("wb-title", {"children": parts.title(record)})
    if box := base.seen(record):
        set_props("wb-picture", {"src": base.picture(record.input, box)})


# --- following

clientside_callback(
    ClientsideFunction("workbench", "nudge"),
    Output({"type": "nudge", "slot": ALL}, "data"),
    Input("transitions", "data"),
    State({"type": "kept", "slot": ALL}, "data"),
    prevent_initial_call=True,
)
clientside_callback(
    ClientsideFunction("workbench", "watch"),
    Output({"type": "poll", "slot": ALL}, "disabled"),
    Output({"type": "poll", "slot": ALL}, "interval"),
    Input({"type": "kept", "slot": ALL}, "data"),
)


@callback(
    Output({"type": "panel", "slot": MATCH}, "children", allow_duplicate=True),
    Output({"type": "kept", "slot": MATCH}, "data", allow_duplicate=True),
    Input({"type": "nudge", "slot": MATCH}, "data"),
    Input({"type": "poll", "slot": MATCH}, "n_intervals"),
    State({"type": "kept", "slot": MATCH}, "data"),
    State({"type": "kept", "slot": MATCH}, "id"),
    prevent_initial_call=True,
)
async def follow(_nudge: Any, _tick: int, kept: dict[str, Any] | None, id: dict[str, Any]) -> tuple[Any, ...]:
    """Something changed in this panel's explanation, or it is time to look: draws what is new, and only that."""
    if not kept or not kept.get("id"):
        return no_update, no_update
    if kept["state"] == "succeeded":
        try:
            record = await ask(calls.explanation(kept["id"]))
        except FanlightError:  # deleted meanwhile: what is shown stays, and is not asked for again
            return no_update, {**kept, "trust": "gone"}
        set_props(panels.badge_id(id["slot"]), {"children": trust.badge(record.trust)})
        return no_update, {**kept, "trust": record.trust.state}
    shown, new, found = await _panel(kept["id"], id["slot"])
    if found is not None and found.prediction:
        _tell_prediction(found)
    return shown, new


clientside_callback(
    ClientsideFunction("workbench", "stop"),
    Output({"type": "stop", "slot": MATCH}, "data"),
    Input({"type": "cancel", "slot": MATCH}, "n_clicks"),
    prevent_initial_call=True,
)


@callback(
    Output({"type": "panel", "slot": MATCH}, "children", allow_duplicate=True),
    Output({"type": "kept", "slot": MATCH}, "data", allow_duplicate=True),
    Input({"type": "stop", "slot": MATCH}, "data"),
    State({"type": "kept", "slot": MATCH}, "data"),
    State({"type": "kept", "slot": MATCH}, "id"),
    prevent_initial_call=True,
)
async def cancel(clicks: int | None, kept: dict[str, Any], id: dict[str, Any]) -> tuple[Any, ...]:
    """Asks the job of a panel to stop."""
    if not clicks:
        return no_update, no_update
    await ask(calls.cancel(kept["job"]))
    shown, new, _ = await _panel(kept["id"], id["slot"])
    return shown, new


clientside_callback(
    ClientsideFunction("workbench", "scales"),
    Output("wb-scales", "data"),
    Input("wb-shared", "checked"),
    Input({"type": "kept", "slot": ALL}, "data"),
    prevent_initial_call=True,
)


@callback(
    Output({"type": "overlay", "slot": ALL}, "src"),
    Output({"type": "legend", "slot": ALL}, "children"),
    Input("wb-scales", "data"),
    State({"type": "overlay", "slot": ALL}, "id"),
    prevent_initial_call=True,
)
async def rescale(scales: dict[str, Any], overlays: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """All maps on one scale, or each on its own."""
    return parts.rescaled(scales["kept"], [o["slot"] for o in overlays], scales["shared"])


clientside_callback(ClientsideFunction("workbench", "opacity"), Input("wb-opacity", "value"))
