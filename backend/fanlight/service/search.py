"""The gallery's questions: filtered, sorted pages of explanations with counts, all answered by the database."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from fanlight import wire
from fanlight.errors import InvalidField
from fanlight.explainers.registry import registry
from fanlight.service.context import Context, Visitor
from fanlight.service.records import explanation_wire, tags_of
from fanlight.store.tables import counter, explanation, tag

EXACT = 10_000  # totals and facets are exact up to here
FACETS = 12
LIMIT = 200
STATES = get_args(wire.State)
OUTCOMES = ("right", "wrong")

e = explanation.c
SORTS: dict[str, tuple[ColumnElement[Any], bool]] = {
    "newest": (e.created, True),
    "oldest": (e.created, False),
    "faithfulness": (func.coalesce(e.faithfulness, -9.0), True),
    "probability": (func.coalesce(e.top_probability, -1.0), True),
}
COLUMNS: dict[str, ColumnElement[Any]] = {
    "family": e.family,
    "explainer": e.explainer,
    "model": e.model,
    "class": e.top_class,
    "outcome": e.outcome,
    "trust": e.trust_class,
    "dataset": e.dataset,
}
TRUST_WORDS = {
    "above": "above the floor",
    "below": "not above the floor",
    "pending": "being measured",
    "unavailable": "not measured",
}


@dataclass(frozen=True)
class Query:
    """Filters by equality (keys of COLUMNS, and input, parent, state, tag), full text, order and page."""

    equal: Mapping[str, str]
    q: str | None = None
    tag: str | None = None
    owner: str | None = None
    sort: str = "newest"
    cursor: str | None = None
    limit: int = 48


def page(context: Context, visitor: Visitor, query: Query) -> wire.Page[wire.Explanation]:
    """One page. Errors: invalid_sort, invalid_limit, invalid_cursor, invalid_filter."""
    if query.sort not in SORTS:
        raise InvalidField(
            f"There is no order “{query.sort}”.", code="invalid_sort", given=query.sort, allowed=list(SORTS)
        )
    if not 1 <= query.limit <= LIMIT:
        raise InvalidField(
            f"A page has 1 to {LIMIT} items.", code="invalid_limit", given=query.limit, allowed=[1, LIMIT]
        )

    _known(context, query.equal)
    start = _decode(query.cursor) if query.cursor else None

    def act(conn: Connection) -> wire.Page[wire.Explanation]:
        where = _where(visitor, query)
        column, down = SORTS[query.sort]
        wanted = select(explanation, column.label("rank")).where(*where)
        if start is not None:
            rank, ident = start
            later = column < rank if down else column > rank
            wanted = wanted.where(or_(later, and_(column == rank, explanation.c.id < ident)))
        wanted = wanted.order_by(column.desc() if down else column.asc(), e.id.desc()).limit(query.limit + 1)
        rows = list(conn.execute(wanted))
        more = len(rows) > query.limit
        rows = rows[: query.limit]
        tags = tags_of(conn, [r.id for r in rows])
        total = _total(conn, visitor, where, query)
        return wire.Page[wire.Explanation](
            items=[explanation_wire(context, r, tags[r.id]) for r in rows],
            next_cursor=_encode(rows[-1].rank, rows[-1].id) if more else None,
            total=min(total, EXACT),
            total_is_floor=total > EXACT,
            facets={} if query.cursor else _facets(context, conn, visitor, query),
        )

    return context.db.read(act)


def states(text: str) -> list[str]:
    """The states of a comma-separated list. Errors: invalid_state."""
    given = [s for s in text.split(",") if s]
    if bad := set(given) - set(STATES):
        raise InvalidField("There is no such state.", code="invalid_state", given=sorted(bad), allowed=list(STATES))
    return given


def _known(context: Context, equal: Mapping[str, str]) -> None:
    """Refuses what a filter with a closed set of values can never equal."""
    states(equal.get("state", ""))
    families = sorted({x.family for x in registry(context.explainers).values()})
    for name, allowed in (("outcome", OUTCOMES), ("trust", tuple(TRUST_WORDS)), ("family", families)):
        if name in equal and equal[name] not in allowed:
            raise InvalidField(
                f"No explanation has this {name}.", code="invalid_filter", given=equal[name], allowed=list(allowed)
            )


def _where(visitor: Visitor, query: Query, without: str | None = None) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = [e.workspace == visitor.workspace, e.superseded_by.is_(None)]
    for name, value in query.equal.items():
        if name == "state":
            where.append(e.state.in_(states(value)))
        elif name != without:
            where.append(COLUMNS.get(name, explanation.c.get(name)) == value)  # type: ignore[arg-type]
    if "state" not in query.equal:
        where.append(e.state.in_(("succeeded", "queued", "running", "failed")))
    if query.tag and without != "tag":
        where.append(
            e.id.in_(select(tag.c.explanation).where(tag.c.workspace == visitor.workspace, tag.c.tag == query.tag))
        )
    if query.owner:
        where.append(e.principal == (visitor.principal if query.owner == "me" else query.owner))
    for word in (query.q or "").casefold().split()[:8]:
        where.append(e.search.contains(word, autoescape=True))
    return where


def _total(conn: Connection, visitor: Visitor, where: list[ColumnElement[bool]], query: Query) -> int:
    if not (query.equal or query.q or query.tag or query.owner):
        kept = conn.execute(
            select(counter.c.value).where(counter.c.workspace == visitor.workspace, counter.c.name == "explanations")
        ).scalar()
        if kept is not None and kept > EXACT:
            return int(kept)
    return counted(conn, select(e.id).where(*where))


def counted(conn: Connection, wanted: Select[Any]) -> int:
    """How many rows, counted no further than one past EXACT."""
    return int(conn.execute(select(func.count()).select_from(wanted.limit(EXACT + 1).subquery())).scalar_one())


def _facets(context: Context, conn: Connection, visitor: Visitor, query: Query) -> dict[str, list[wire.Facet]]:
    """Counts per value of each dimension, under all the other filters."""
    found: dict[str, list[wire.Facet]] = {}
    titles = {n: x.title for n, x in registry(context.explainers).items()}

    def label(dimension: str, value: str) -> str:
        match dimension:
            case "explainer":
                return titles.get(value, value)
            case "model":
                return context.models.name_of(value)
            case "trust":
                return TRUST_WORDS.get(value, value)
        return value

    for name, column in COLUMNS.items():
        where = _where(visitor, query, without=name)
        inner = select(column.label("value")).where(*where, column.is_not(None)).limit(EXACT).subquery()
        rows = conn.execute(
            select(inner.c.value, func.count().label("n"))
            .group_by(inner.c.value)
            .order_by(func.count().desc(), inner.c.value)
            .limit(FACETS)
        )
        found[name] = [wire.Facet(value=str(r.value), label=label(name, str(r.value)), count=r.n) for r in rows]
    inside = select(e.id).where(*_where(visitor, query, without="tag")).limit(EXACT)
    rows = conn.execute(
        select(tag.c.tag, func.count().label("n"))
        .where(tag.c.explanation.in_(inside))
        .group_by(tag.c.tag)
        .order_by(func.count().desc())
        .limit(FACETS)
    )
    found["tag"] = [wire.Facet(value=r.tag, label=r.tag, count=r.n) for r in rows]
    return found


def _encode(rank: Any, ident: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([rank, ident]).encode()).decode().rstrip("=")


def _decode(cursor: str) -> tuple[float, str]:
    try:
        rank, ident = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        number = isinstance(rank, (int, float)) and not isinstance(rank, bool) and abs(rank) < 2**63  # NaN fails too
        if not number or not isinstance(ident, str) or not ident.isascii() or not ident.isprintable():
            raise ValueError
        return rank, ident
    except (ValueError, TypeError, RecursionError) as error:
        raise _foreign(cursor) from error


def position(cursor: str) -> int:
    """The position that a numeric cursor names. Errors: invalid_cursor."""
    found = ordinal(cursor)
    if found is None:
        raise _foreign(cursor)
    return found


def ordinal(text: str) -> int | None:
    """A whole number that fits a column, from its ASCII digits, else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _foreign(cursor: str) -> InvalidField:
    hint = "Start from the first page."
    return InvalidField("This cursor was not made by this server.", code="invalid_cursor", given=cursor, hint=hint)
