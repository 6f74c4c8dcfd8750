"""The gallery as a table: rows come in blocks as somebody scrolls, by the cursors that the server gives out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dash
import dash_ag_grid as dag
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.drawing.trust import score
from fanlight.errors import BadRequest
from fanlight.wire import Explanation, Trust
from fanlight_ui import cards, session
from fanlight_ui.query import Query
from fanlight_ui.views.numbers import output, when

BLOCK = 60

COLUMNS: list[dict[str, Any]] = [
    {"field": "name", "headerName": "Explained", "cellRenderer": "RecordLink", "minWidth": 110, "flex": 1},
    {"field": "probability", "headerName": "Probability", "type": "rightAligned", "width": 96},
    {"field": "method", "headerName": "Method", "minWidth": 150, "flex": 1},
    {"field": "model", "headerName": "Model", "minWidth": 152, "flex": 1},
    {"field": "faithfulness", "headerName": "Faithfulness", "width": 156},
    {"field": "outcome", "headerName": "Outcome", "width": 84},
    {"field": "stored", "headerName": "Stored", "width": 142},
    {"field": "input", "headerName": "Input", "minWidth": 120, "flex": 1},
]


_scripts: list[str] = []


def defer(app: dash.Dash) -> None:
    """Leaves the grid's code, the heaviest of all, out of the pages; `assets/table.js` loads it where a table is shown."""
    code = dag._js_dist[0]
    code.pop("dynamic", None)
    _scripts[:] = [d["url"] for d in app.get_dist(["dash_ag_grid"]) if d["type"] == "_js_dist"]
    code["dynamic"] = True


def table(query: Query) -> Component:
    """The place of the table. Its grid comes once its code is there: input `grid-ready`."""
    return html.Div(
        [
            dcc.Store(id="query", data=dict(query.given)),
            dcc.Store(id="cursors", data={}),
            dcc.Store(id="grid-ready"),
            html.Div(
                html.P("The table is being loaded.", className="quiet"),
                id="table",
                **{"data-scripts": " ".join(_scripts)},
            ),
        ]
    )


def grid() -> Component:
    return dag.AgGrid(
        id="explanations",
        columnDefs=COLUMNS,
        rowModelType="infinite",
        defaultColDef={"sortable": False, "resizable": True, "suppressHeaderMenuButton": True},
        # One request at a time, because the cursor of a block is known once the block before it is there.
        dashGridOptions={"cacheBlockSize": BLOCK, "maxConcurrentDatasourceRequests": 1, "rowHeight": 40},
        className="ag-theme-quartz records",
        style={"height": "calc(100vh - 180px)", "minHeight": "320px"},
    )


def filled(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """The columns without those that are empty in every row so far.

    Args:
        rows: of one block.
        columns: as the blocks before it left them; None for the first block.
    """
    seen = {name for r in rows for name, value in r.items() if value not in ("", None)}
    seen |= {c["field"] for c in columns or () if not c.get("hide")}
    return [{**c, "hide": c["field"] not in seen} for c in COLUMNS]


async def block(
    request: dict[str, Any], query: Query, cursors: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The rows that the grid asks for, and the cursors of what follows.

    Args:
        request: {"startRow", "endRow", ...}; the grid asks for blocks in order, and again for earlier ones.
        query: what the table shows.
        cursors: first row of a block -> its cursor, for the blocks that were reached.
    """
    start, limit = int(request["startRow"]), int(request["endRow"]) - int(request["startRow"])
    if start and str(start) not in cursors:
        raise BadRequest("The rows of the table are reached in order.", given=start, allowed=[int(c) for c in cursors])
    page = await session.ask(calls.explanations(**query.asked(limit, cursors.get(str(start)))))
    end = start + len(page.items)
    known = {**cursors, str(end): page.next_cursor} if page.next_cursor else cursors
    # Without a count the grid takes it that there is one more block.
    return {"rowData": [row(e) for e in page.items], "rowCount": None if page.next_cursor else end}, known


def row(e: Explanation) -> dict[str, Any]:
    top = (e.target or {}).get("class")
    p = next((p for p in e.prediction if p.index == top), None)
    return {
        "id": e.id,
        "href": session.href(f"/e/{e.id}"),
        "name": cards.name(e),
        "probability": "" if p is None else output(p),
        "method": e.explainer_title,
        "model": e.model_name,
        "faithfulness": faithfulness(e.trust),
        "outcome": e.outcome or "",
        "input": e.input_name,
        "stored": when(e.created),
    }


def faithfulness(trust: Trust) -> str:
    """The score with the mark of the cards' badges, and words where it is not above the floor."""
    if trust.faithfulness is None:
        return "◌ being measured" if trust.state in ("pending", "running") else "○ not measured"
    number = score(trust.faithfulness)
    return f"● {number}" if trust.above_floor else f"▽ {number} not above"
