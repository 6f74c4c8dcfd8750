"""Explanation `/e/{id}`: the record. Picture first, then what the model said, why, how far to trust it, and where each number comes from."""

from __future__ import annotations

import time
import uuid
from typing import Any

import dash
from dash import (
    ALL,
    ClientsideFunction,
    Input,
    Output,
    State,
    callback,
    clientside_callback,
    ctx,
    dcc,
    html,
    no_update,
)
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError, InvalidField
from fanlight_ui import changes, editing, errors, known, panels, record
from fanlight_ui.choice import wire_target
from fanlight_ui.session import ask, go
from fanlight_ui.views import base, prediction

dash.register_page(__name__, path_template="/e/<id>", title="Explanation · Fanlight")


@errors.page
async def layout(id: str, **_query: str) -> Component:
    whole = await known.known(id)
    system = await ask(calls.system())
    return html.Main(
        [
            dcc.Store(id="ex-id", data=id),
            dcc.Store(id="ex-state", data=known.state(whole.record)),
            dcc.Store(id="ex-nudge"),
            dcc.Store(id="ex-session", data=uuid.uuid4().hex),
            dcc.Store(id="ex-live"),
            dcc.Store(id="ex-again"),
            dcc.Interval(id="ex-poll", interval=2000, disabled=True),
            dcc.Interval(id="ex-again-poll", interval=1000, disabled=True),
            html.Div(record.head(whole.record), id="ex-head"),
            html.Section(id="ex-change-part", className="card pad", hidden=True, **{"aria-label": "Change something"}),
            html.Div(await _body(whole), id="ex-body"),
            changes.share_dialog(editing.share_days(system)),
            changes.delete_dialog(),
        ],
        className="page",
    )


async def _body(whole: record.Known) -> Any:
    found = whole.record
    if found.state == "succeeded":
        return record.body(whole)
    if found.state in wire.TERMINAL or found.job is None:
        return html.Div(panels.ended(found), className="card")
    predicted = html.Div(prediction.of(found), className="pad")
    shown = html.Img(src=base.picture(found.input), alt=f"The picture {found.input_name}".strip(), className="subject")
    waiting = panels.waiting(await ask(calls.job(found.job)), 0)
    return html.Div(
        [
            html.Section([shown, predicted], className="card subject-part"),
            html.Section([html.H2(found.explainer_title, className="pad"), waiting], className="card map-part"),
        ],
        className="record",
    )


# --- arriving

clientside_callback(
    ClientsideFunction("record", "nudge"),
    Output("ex-nudge", "data"),
    Input("transitions", "data"),
    State("ex-id", "data"),
    prevent_initial_call=True,
)
clientside_callback(
    ClientsideFunction("record", "watch"),
    Output("ex-poll", "disabled"),
    Output("ex-poll", "interval"),
    Input("ex-state", "data"),
)
clientside_callback(
    ClientsideFunction("record", "neighbours"),
    Output("ex-previous", "href"),
    Output("ex-previous", "hidden"),
    Output("ex-next", "href"),
    Output("ex-next", "hidden"),
    Input("ex-id", "data"),
)
clientside_callback(ClientsideFunction("workbench", "opacity"), Input("ex-opacity", "value"))


@callback(
    Output("ex-head", "children"),
    Output("ex-body", "children"),
    Output("ex-state", "data"),
    Input("ex-nudge", "data"),
    Input("ex-poll", "n_intervals"),
    State("ex-id", "data"),
    State("ex-state", "data"),
    prevent_initial_call=True,
)
async def arrive(_nudge: Any, _tick: int, id: str, shown: dict[str, Any]) -> tuple[Any, ...]:
    """The record changed, or may have: the whole body where it ended, only the trust where that came."""
    try:
        found = await ask(calls.explanation(id))
    except FanlightError as e:
        return no_update, errors.notice(e, title="It is not here any more"), {**shown, "state": "gone"}
    if shown["state"] == "succeeded":
        if (now := known.state(found)) != shown:
            await known.draw_trust(found)
        return no_update, no_update, now
    whole = await known.known(id)
    return record.head(whole.record), await _body(whole), known.state(whole.record)


@callback(
    Output("ex-state", "data", allow_duplicate=True),
    Input("ex-check", "n_clicks"),
    State("ex-id", "data"),
    prevent_initial_call=True,
)
async def check(clicks: int | None, id: str) -> Any:
    """Measures further what is not measured yet."""
    return await known.check(id) if clicks else no_update


@callback(
    Output("ex-state", "data", allow_duplicate=True),
    Input({"type": "check-cancel", "job": ALL}, "n_clicks"),
    State("ex-id", "data"),
    prevent_initial_call=True,
)
async def leave(clicks: list[int | None], id: str) -> Any:
    """Leaves one of the measurements that run."""
    return await known.leave(id, ctx.triggered_id["job"]) if any(clicks) else no_update


@callback(
    Output("ex-body", "children", allow_duplicate=True),
    Output("ex-state", "data", allow_duplicate=True),
    Input(panels.cancel_id(0), "n_clicks"),
    State("ex-id", "data"),
    State("ex-state", "data"),
    prevent_initial_call=True,
)
async def cancel(clicks: int | None, id: str, shown: dict[str, Any]) -> tuple[Any, ...]:
    if not clicks:
        return no_update, no_update
    await ask(calls.cancel(shown["job"]))
    whole = await known.known(id)
    return await _body(whole), known.state(whole.record)


# --- asking something else


@callback(Input("ex-minus", "value"), State("ex-id", "data"), prevent_initial_call=True)
async def rather_than(minus: str | None, id: str) -> None:
    """Evidence for this class rather than another: a new explanation, opened at once."""
    found = await ask(calls.explanation(id))
    held = (found.target or {}).get("minus")
    chosen = prediction.explained(found)
    if chosen is None or minus == (str(held[1]) if held else None):
        return
    target = wire_target(chosen, int(minus) if minus else None)
    regions = base.hidden_regions(found.edits)
    if regions:
        answer = await ask(calls.intervene(id, [*({"mask_region": list(r)} for r in regions), {"set_target": target}]))
    else:
        answer = await ask(
            calls.explain(
                found.model, found.input, found.explainer, target=target, params=found.params, seed=found.seed, wait=0
            )
        )
    go(f"/e/{answer.id}")


@callback(
    Output("ex-change-part", "children"),
    Output("ex-change-part", "hidden"),
    Output("ex-change", "aria-expanded"),
    Input("ex-change", "n_clicks"),
    State("ex-change-part", "hidden"),
    State("ex-id", "data"),
    prevent_initial_call=True,
)
async def change(clicks: int | None, hidden: bool, id: str) -> tuple[Any, ...]:
    """Opens or closes what can be changed."""
    if not clicks:
        return no_update, no_update, no_update
    if not hidden:
        return None, True, "false"
    return (
        changes.hide(await ask(calls.explanation(id))) or html.P("This kind of result has nothing that can be hidden."),
        False,
        "true",
    )


@callback(
    Output("ex-hide-said", "children"),
    Input("ex-hide", "n_clicks"),
    State("ex-id", "data"),
    *(State(f"ex-hide-{corner}", "value") for corner in changes.CORNERS),
    running=[
        (Output("ex-hide", "disabled"), True, False),
        (Output("ex-hide", "children"), "Asking the model …", changes.HIDE),
    ],
    prevent_initial_call=True,
)
async def hide(clicks: int | None, id: str, *corners: Any) -> Any:
    """Asks the model again with the rectangle hidden, beside those that were hidden before; opens the new record."""
    if not clicks:
        return no_update
    wanted = changes.region(corners)
    if wanted is None:
        return errors.notice(
            InvalidField("The rectangle has no area yet.", hint="Draw it on the picture, or fill in all four corners.")
        )
    found = await ask(calls.explanation(id))
    try:
        answer = await ask(
            calls.intervene(
                id, [*({"mask_region": list(r)} for r in base.hidden_regions(found.edits)), {"mask_region": wanted}]
            )
        )
    except FanlightError as e:
        return errors.notice(e)
    go(f"/e/{answer.id}")
    return "Asked; opening the new record."


# Of quick changes only the latest is answered: each carries the time of the click as its number.
clientside_callback(
    ClientsideFunction("record", "live"),
    Output("ex-live", "data"),
    Input("ex-live-class", "value"),
    prevent_initial_call=True,
)


@callback(
    Output("ex-live-panel", "children"),
    Input("ex-live", "data"),
    State("ex-id", "data"),
    State("ex-session", "data"),
    prevent_initial_call=True,
)
async def live(wanted: dict[str, Any] | None, id: str, session: str) -> Any:
    """The stored regions for another class, without asking the model."""
    if not wanted:
        return None
    try:
        found = await ask(calls.explanation(id))
        panel = await ask(
            calls.live(session, id, [{"set_target": {"class": int(wanted["class"])}}], int(wanted["seq"]))
        )
    except FanlightError as e:
        return no_update if e.code == "superseded" else errors.notice(e)
    return record.live_panel(panel, base.picture(found.input, base.seen(found)))


# --- verifying


@callback(
    Output("ex-verdict", "children"),
    Output("ex-again", "data"),
    Output("ex-again-poll", "disabled"),
    Input("ex-recompute", "n_clicks"),
    Input("ex-again-poll", "n_intervals"),
    State("ex-again", "data"),
    State("ex-id", "data"),
    prevent_initial_call=True,
)
async def recompute(clicks: int | None, _tick: int, again: str | None, id: str) -> tuple[Any, ...]:
    """Computes it again and says how the numbers compare; polls while that lasts."""
    if again is None:
        if not clicks:
            return no_update, no_update, no_update
        again = (await ask(calls.recompute(id))).id
    found = await ask(calls.explanation(again))
    if found.state not in wire.TERMINAL:
        job = await ask(calls.job(found.job)) if found.job else None
        return f"Recomputing: {panels.progress_words(job)}" if job else "Recomputing", again, False
    return [changes.verdict(found), " ", dcc.Link("Open it", href=record.href(f"/e/{found.id}"))], None, True


# --- keeping, sending, deleting


@callback(
    Output("ex-share-dialog", "opened"),
    Output("ex-share-made", "children"),
    Input("ex-share", "n_clicks"),
    prevent_initial_call=True,
)
async def open_share(clicks: int | None) -> tuple[Any, ...]:
    return (True, None) if clicks else (no_update, no_update)


@callback(
    Output("ex-share-made", "children", allow_duplicate=True),
    Input("ex-share-make", "n_clicks"),
    State("ex-share-days", "value"),
    State("ex-id", "data"),
    State({"type": "shared-view", "page": ALL}, "data"),
    running=[(Output("ex-share-make", "disabled"), True, False)],
    prevent_initial_call=True,
)
async def share(clicks: int | None, days: Any, id: str, views: list[Any]) -> Any:
    """Args: views: of a page that shows more than the record, what it shows; at most one."""
    if not clicks:
        return no_update
    try:
        return changes.shared(
            await ask(
                calls.share([id], view=next(filter(None, views), None), expires_in_days=int(days) if days else None)
            )
        )
    except FanlightError as e:
        return errors.notice(e)


@callback(
    Output("ex-title", "children"),
    Input("ex-save", "n_clicks"),
    State("ex-id", "data"),
    State("ex-own-title", "value"),
    State("ex-tags", "value"),
    State("ex-note", "value"),
    prevent_initial_call=True,
)
async def save(clicks: int | None, id: str, title: str, tags: list[str], note: str) -> Any:
    if not clicks:
        return no_update
    kept = await ask(calls.patch(id, title=title or "", tags=tags or [], note=note or ""))
    errors.toast("Saved.", kind="good")
    return record.title(kept)


@callback(
    Output("ex-delete-dialog", "opened"),
    Output("ex-delete-says", "children"),
    Input("ex-delete", "n_clicks"),
    State("ex-id", "data"),
    prevent_initial_call=True,
)
async def ask_delete(clicks: int | None, id: str) -> tuple[Any, ...]:
    """Says which links would be revoked before anything happens."""
    if not clicks:
        return no_update, no_update
    return True, changes.delete_says(await ask(calls.shares()), id, time.time())


@callback(
    Output("ex-delete-dialog", "opened", allow_duplicate=True),
    Input("ex-delete-not", "n_clicks"),
    prevent_initial_call=True,
)
async def keep(clicks: int | None) -> Any:
    return False if clicks else no_update


@callback(Input("ex-delete-sure", "n_clicks"), State("ex-id", "data"), prevent_initial_call=True)
async def delete(clicks: int | None, id: str) -> None:
    if not clicks:
        return
    gone = await ask(calls.delete(id))
    count = len(gone.revoked_shares)
    errors.toast(
        "Deleted." if not count else f"Deleted; {count} {'link' if count == 1 else 'links'} revoked.", kind="good"
    )
    go("/")
