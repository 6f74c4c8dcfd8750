"""Gallery: the stored explanations. All of its state is in the address, so every filter is a link and back goes back."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import ALL, Input, Output, State, ctx, dcc, html, no_update, set_props
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight.client import calls
from fanlight.wire import Explanation, Page
from fanlight_ui import cards, errors, examples, filters, session
from fanlight_ui.cards import card_id, inside
from fanlight_ui.query import Query
from fanlight_ui.table import block, filled, grid, table

dash.register_page(__name__, path="/", title="Gallery · Fanlight", order=0)

LIMIT = 36


@errors.page
async def layout(**address: Any) -> Component:
    query = Query.of(address)
    found, first, system = await asyncio.gather(list_page(query), first_page(query), session.ask(calls.system()))
    facets = (first or found).facets
    if not found.total and not query.filters:
        return await examples.empty()
    if not found.total:
        content = filters.nothing(query)
    elif query.view == "table":
        content = table(query)
    else:
        shown = dcc.Store(id="shown", data=[e.id for e in found.items])
        content = html.Div([shown, cards.grid(found.items), filters.pager(query, found), cards.tray()])
    main = html.Main([filters.head(query, found, facets, system.explanations), content])
    return html.Div([filters.panel(query, facets), main], className="page gallery")


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
