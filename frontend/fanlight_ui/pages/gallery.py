"""Gallery: the stored explanations. All of its state is in the address, so every filter is a link and back goes back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import dash
from dash import ALL, Input, Output, State, ctx, dcc, html, no_update, set_props
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight.wire import Explanation, Facet, Page
from fanlight_ui import cards, errors, examples, filters, saved, session
from fanlight_ui.cards import card_id, inside
from fanlight_ui.query import Query
from fanlight_ui.table import block, filled, grid, table

dash.register_page(__name__, path="/", title="Gallery · Fanlight", order=0)

LIMIT = 36
SWEEPS = 12


@errors.page
async def layout(**address: Any) -> Component:
    query = Query.of(address)
    found, first, system, views, sweeps = await asyncio.gather(
        list_page(query),
        first_page(query),
        session.ask(calls.system()),
        session.ask(calls.views()),
        session.ask(calls.sweeps(limit=SWEEPS)),
    )
    swept = [Facet(value=s.id, label=s.name, count=-1) for s in sweeps.items]
    facets = {**(first or found).facets, "sweep": swept}
    if not found.total and not query.filters:
        return await examples.empty()
    if not found.total:
        content = filters.nothing(query)
    elif query.view == "table":
        content = table(query)
    else:
        shown = dcc.Store(id="shown", data=[e.id for e in found.items])
        walk = {
            "data-query": json.dumps(query.filters | {"sort": query.sort}),
            "data-at": query.given.get("cursor", ""),
        }
        walk["data-next"] = found.next_cursor or ""
        inside = [shown, cards.grid(found.items), filters.pager(query, found), cards.tray()]
        content = html.Div(inside, className="walked", **walk)
    main = html.Main([filters.head(query, found, facets, system.explanations), content])
    aside = filters.panel(query, facets, [saved.section(views, query)], [saved.sweep_links(query)])
    return html.Div([aside, main], className="page gallery")


async def list_page(query: Query) -> Page[Explanation]:
    """The page of cards; the table asks for its rows itself."""
    return await session.ask(calls.explanations(**query.asked(LIMIT if query.view == "cards" else 1)))


async def first_page(query: Query) -> Page[Explanation] | None:
    """On a later page: the first one, because the counts of the whole list are given with it only."""
    return await session.ask(calls.explanations(**query.filters, limit=1)) if "cursor" in query.given else None


@dash.callback(
    Input({"type": "example", "input": ALL, "model": ALL, "explainer": ALL}, "n_clicks"),
    running=[(Output("example-state", "children"), "Computing; it opens as soon as it is there.", "")],
)
async def open_example(clicks: list[int | None]) -> None:
    if any(clicks) and ctx.triggered_id:
        asked = {k: v for k, v in ctx.triggered_id.items() if k != "type"}
        session.go("/e/" + await examples.compute(**asked))


@dash.callback(Output("shown", "data"), Input("transitions", "data"), State("shown", "data"), prevent_initial_call=True)
async def renew_card(event: dict[str, Any] | None, shown: list[str]) -> list[str]:
    """A card follows what happens to its explanation: computed, trusted. The output is there so that Dash calls this on this page only."""
    id = (event or {}).get("explanation")
    if id not in shown:
        raise PreventUpdate
    set_props(card_id(id), {"children": inside(await session.ask(calls.explanation(id)))})
    return shown


@dash.callback(Output("table", "children"), Input("grid-ready", "data"), prevent_initial_call=True)
async def show_grid(ready: bool | None) -> Component:
    if not ready:
        raise PreventUpdate
    return grid()


@dash.callback(
    Output("explanations", "getRowsResponse"),
    Output("cursors", "data"),
    Output("explanations", "columnDefs"),
    Input("explanations", "getRowsRequest"),
    State("query", "data"),
    State("cursors", "data"),
    State("explanations", "columnDefs"),
)
async def rows(
    request: dict[str, Any] | None, given: dict[str, str], cursors: dict[str, str], columns: list[dict[str, Any]]
) -> tuple[Any, Any, Any]:
    if request is None:
        raise PreventUpdate
    answer, known = await block(request, Query.of(given), cursors)
    now = filled(answer["rowData"], columns if request["startRow"] else None)
    return answer, known, now if now != columns else no_update


@dash.callback(
    Output("gv", "children"),
    Input("gv-save", "n_clicks"),
    Input("gv-name", "n_submit"),
    State("gv-name", "value"),
    State("gv-query", "data"),
    prevent_initial_call=True,
)
async def save_view(clicks: int | None, submitted: int | None, name: str | None, asked: dict[str, str]) -> list[Any]:
    if not clicks and not submitted:
        raise PreventUpdate
    said = "Give it a name first."
    if (name or "").strip():
        try:
            await session.ask(calls.save_view((name or "").strip(), asked))
            said = ""
        except FanlightError as e:
            said = " ".join(filter(None, errors.said(e)))
    return saved.inside(await session.ask(calls.views()), asked, said=said)


@dash.callback(
    Output("gv", "children", allow_duplicate=True),
    Input({"type": "gv-do", "verb": ALL, "view": ALL}, "n_clicks"),
    State("gv-query", "data"),
    prevent_initial_call=True,
)
async def change_view(clicks: list[int | None], asked: dict[str, str]) -> list[Any]:
    """Rename, delete, and back again."""
    if not any(clicks) or not ctx.triggered_id or ctx.triggered_id["verb"] == "keep":
        raise PreventUpdate
    verb, id = ctx.triggered_id["verb"], ctx.triggered_id["view"]
    editing, deleted, said = "", None, ""
    try:
        if verb == "rename":
            editing = id
        elif verb == "delete":
            deleted = await session.ask(calls.delete_view(id))
        elif verb == "undo":
            await session.ask(calls.restore_view(id))
    except FanlightError as e:
        said = " ".join(filter(None, errors.said(e)))
    return saved.inside(await session.ask(calls.views()), asked, editing=editing, deleted=deleted, said=said)


@dash.callback(
    Output("gv", "children", allow_duplicate=True),
    Input({"type": "gv-do", "verb": "keep", "view": ALL}, "n_clicks"),
    Input("gv-new-name", "n_submit"),
    State("gv-new-name", "value"),
    State({"type": "gv-do", "verb": "keep", "view": ALL}, "id"),
    State("gv-query", "data"),
    prevent_initial_call=True,
)
async def rename_view(
    clicks: list[int | None], submitted: int | None, name: str | None, ids: list[dict[str, str]], asked: dict[str, str]
) -> list[Any]:
    if not (any(clicks) or submitted) or not ids:
        raise PreventUpdate
    said = ""
    try:
        await session.ask(calls.patch_view(ids[0]["view"], name=(name or "").strip()))
    except FanlightError as e:
        said = " ".join(filter(None, errors.said(e)))
    return saved.inside(await session.ask(calls.views()), asked, said=said)
