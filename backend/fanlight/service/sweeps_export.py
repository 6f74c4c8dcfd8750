"""Files of a sweep: every item as CSV or JSON, the summary as one HTML page that needs no server."""

from __future__ import annotations

import base64
import csv
import io
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, Row

from fanlight import wire
from fanlight.drawing import sweep_page
from fanlight.errors import FanlightError, Unavailable
from fanlight.service import pictures, sweeps
from fanlight.service.context import Context, Visitor
from fanlight.store.tables import sweep_item

Form = Literal["csv", "json", "html"]
MEDIA = {"csv": "text/csv; charset=utf-8", "json": "application/json", "html": "text/html; charset=utf-8"}
COLUMNS = (
    "position", "name", "label", "state", "explanation", "reused", "predicted", "probability", "outcome", "faithfulness", "above_floor",
    "cluster", "reason", "input",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(context: Context, visitor: Visitor, ident: str, form: Form) -> bytes:
    """Errors: unknown_sweep."""
    if form == "html":
        return _page(context, visitor, ident)
    rows = _items(context, visitor, ident)
    if form == "json":
        shown = sweeps.one(context, visitor, ident)
        return orjson.dumps(
            {"sweep": shown.model_dump(mode="json"), "items": [r.model_dump(mode="json") for r in rows]}
        )
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(COLUMNS)
    for r in rows:
        write.writerow([cell(getattr(r, c)) for c in COLUMNS])
    return out.getvalue().encode()


def cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is kept a text."""
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(FORMULA):
        return "'" + value
    return value


def _items(context: Context, visitor: Visitor, ident: str) -> list[wire.SweepItem]:
    made = context.summaries.known(ident)
    cluster = made.cluster if made is not None else {}

    def act(conn: Connection) -> list[Row[Any]]:
        sweeps.find(conn, visitor, ident)
        return list(conn.execute(sweeps.results().where(sweep_item.c.sweep == ident)))

    return [sweeps.item_wire(r, cluster.get(r.explanation or "")) for r in context.db.read(act)]


def _page(context: Context, visitor: Visitor, ident: str) -> bytes:
    made = context.summaries.known(ident)
    if made is None:
        raise Unavailable(
            "The summary is still being made.", code="summary_pending", hint="Try again in a few seconds."
        )
    found = made.summary
    by_id = {r.explanation: r for r in _items(context, visitor, ident) if r.explanation}
    cards = {}
    for one in dict.fromkeys([*found.most[:4], *found.least[:4], *found.confident[:4]]):
        try:
            cards[one] = _data(pictures.card(context, visitor, one))
        except FanlightError:  # gone since
            continue
    groups = made.groups
    drawn = [] if groups is None else [(_data(p), _data(m)) for p, m in zip(groups.pictures, groups.maps, strict=True)]
    skipped = [r for r in _items(context, visitor, ident) if r.reason]
    return sweep_page.page(sweeps.one(context, visitor, ident), found, by_id, cards, drawn, skipped).encode()


def _data(blob: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(blob).decode()
