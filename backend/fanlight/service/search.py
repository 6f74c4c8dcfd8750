"""The gallery's questions: filtered, sorted pages of explanations with counts, all answered by the database."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, or_, select

from fanlight import wire
from fanlight.errors import InvalidField
from fanlight.explainers.registry import registry
from fanlight.service import listing as listing_service
from fanlight.service.context import Context, Visitor
from fanlight.service.listing import Match, key, tokens
from fanlight.service.records import explanation_wire, tags_of
from fanlight.store.tables import counter, explanation, listing

EXACT = 10_000  # totals and facets are exact up to here
FACETS = 12
LIMIT = 200
STATES = get_args(wire.State)
OUTCOMES = ("right", "wrong")

DIMENSIONS = ("family", "explainer", "model", "class", "outcome", "trust", "dataset")
"""Filters with counts: columns of `listing`."""
SORTS: dict[str, tuple[ColumnElement[Any], bool]] = {
    "newest": (listing.c.n, True),
    "oldest": (listing.c.n, False),
    "faithfulness": (listing.c.faithfulness, True),
    "probability": (listing.c.probability, True),
}
_FACETED = {name: listing.c[name] for name in DIMENSIONS} | {"tag": listing.c.tags}
_FACETS = tuple(_FACETED.values())
TRUST_WORDS = {
    "above": "above the floor",
    "below": "not above the floor",
    "pending": "being measured",
    "unavailable": "not measured",
}


@dataclass(frozen=True)
class Query:
    """Filters by equality (DIMENSIONS, and input, parent, state), tag, owner, beginnings of words, order and page."""

    equal: Mapping[str, str]
    q: str | None = None
    tag: str | None = None
    owner: str | None = None
    sort: str = "newest"
    cursor: str | None = None
    limit: int = 48

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Query:
        """From the parameters of a gallery's address; empty ones are none."""
        others = ("q", "tag", "owner", "sort", "view")
        equal = {k: v for k, v in given.items() if k not in others and v}
        return cls(
            equal,
            q=given.get("q"),
            tag=given.get("tag"),
            owner=given.get("owner"),
            sort=given.get("sort") or "newest",
        )


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
    start = _decode(query.cursor, query.sort) if query.cursor else None

    listing_service.refresh(context)

    def act(conn: Connection) -> wire.Page[wire.Explanation]:
        match = _match(visitor, query)
        seen = _tuples(conn, match.newest(conn, *_FACETS).limit(EXACT + 1))
        rows = _rows(conn, query, match, start, few=len(seen) <= EXACT)
        more = len(rows) > query.limit
        rows = rows[: query.limit]
        records = {
            r.id: r
            for r in conn.execute(select(explanation).where(explanation.c.id.in_([r.explanation for r in rows])))
        }
        tags = tags_of(conn, list(records))
        kept = _kept(conn, visitor) if not _narrowed(query) else None
        total = min(len(seen), EXACT) if kept is None else kept
        return wire.Page[wire.Explanation](
            items=[
                explanation_wire(context, records[i], tags[i]) for i in (r.explanation for r in rows) if i in records
            ],
            next_cursor=_encode(query.sort, rows[-1].rank, rows[-1].n) if more else None,
            total=total,
            total_is_floor=kept is None and len(seen) > EXACT,
            facets={} if query.cursor else _facets(context, conn, visitor, query, seen[:EXACT]),
        )

    return context.db.read(act)


def ids(context: Context, visitor: Visitor, query: Query, most: int) -> list[str]:
    """The explanations of a gallery in its order, at most `most` and one more. Errors: invalid_sort, invalid_filter."""
    _known(context, query.equal)
    listing_service.refresh(context)

    def act(conn: Connection) -> list[str]:
        match = _match(visitor, query)
        few = counted(conn, match.newest(conn, listing.c.n)) <= EXACT
        rows = _rows(conn, dataclasses.replace(query, limit=most), match, None, few=few)
        return [r.explanation for r in rows]

    return context.db.read(act)


def _rows(
    conn: Connection, query: Query, match: Match, start: tuple[float, int] | None, *, few: bool
) -> list[Row[Any]]:
    """One row more than the page: explanation, rank and n. Args: few: all that match are EXACT at most, so that they can be sorted."""
    rank, down = SORTS[query.sort]
    columns: tuple[ColumnElement[Any], ...] = (listing.c.explanation, rank.label("rank"), listing.c.n)
    wanted: Select[Any]
    if query.sort == "newest":
        wanted = match.newest(conn, *columns)
    else:
        order = (rank.desc(), listing.c.n.desc()) if down else (rank.asc(), listing.c.n.asc())
        if few:
            inside = match.newest(conn, listing.c.n).limit(EXACT)
            wanted = select(*columns).where(listing.c.n.in_(inside.scalar_subquery()))
        else:  # many match: along the order, until the page is full
            wanted = select(*columns).where(match.condition(conn))
        wanted = wanted.order_by(*order)
    if start is not None:
        value, n = start
        later = rank < value if down else rank > value
        after = listing.c.n < n if down else listing.c.n > n
        wanted = wanted.where(later if rank is listing.c.n else or_(later, and_(rank == value, after)))
    return list(conn.execute(wanted.limit(query.limit + 1)))


def states(text: str) -> list[str]:
    """The states of a comma-separated list. Errors: invalid_state."""
    given = [s for s in text.split(",") if s]
    if bad := set(given) - set(STATES):
        raise no_state(sorted(bad), STATES)
    return given


def no_state(bad: Sequence[str], states: Sequence[str]) -> InvalidField:
    return InvalidField("There is no such state.", code="invalid_state", given=list(bad), allowed=list(states))


def _known(context: Context, equal: Mapping[str, str]) -> None:
    """Refuses what a filter with a closed set of values can never equal."""
    states(equal.get("state", ""))
    families = sorted({x.family for x in registry(context.explainers).values()})
    for name, allowed in (("outcome", OUTCOMES), ("trust", tuple(TRUST_WORDS)), ("family", families)):
        if name in equal and equal[name] not in allowed:
            raise InvalidField(
                f"No explanation has this {name}.", code="invalid_filter", given=equal[name], allowed=list(allowed)
            )


def _match(visitor: Visitor, query: Query, without: str | None = None) -> Match:
    equal = {name: value for name, value in query.equal.items() if name not in ("state", without)}
    if query.tag and without != "tag":
        equal["tag"] = query.tag
    if query.owner:
        equal["principal"] = visitor.principal if query.owner == "me" else query.owner
    wanted = states(query.equal.get("state", ""))
    if not wanted:
        equal["shown"] = "yes"
    keys = [key("workspace", visitor.workspace), *(key(name, value) for name, value in equal.items())]
    columns: dict[str, Any] = {name: value for name, value in equal.items() if name in DIMENSIONS}
    columns |= {"workspace": visitor.workspace} | ({} if wanted else {"shown": True})
    typed = tuple(tokens(query.q or "")[:8])
    return Match(tuple(keys), tuple(key("state", s) for s in wanted), typed, tuple(columns.items()))


def _narrowed(query: Query) -> bool:
    return bool(query.equal or query.q or query.tag or query.owner)


def _kept(conn: Connection, visitor: Visitor) -> int:
    """How many there are in all: a count that is kept."""
    here = counter.c.workspace == visitor.workspace, counter.c.name == listing_service.SHOWN_COUNT
    return int(conn.execute(select(counter.c.value).where(*here)).scalar() or 0)


def counted(conn: Connection, wanted: Select[Any]) -> int:
    """How many rows, counted no further than one past EXACT."""
    return int(conn.execute(select(func.count()).select_from(wanted.limit(EXACT + 1).subquery())).scalar_one())


def _facets(
    context: Context, conn: Connection, visitor: Visitor, query: Query, seen: Sequence[tuple[Any, ...]]
) -> dict[str, list[wire.Facet]]:
    """Counts per value of each dimension, under all the other filters. Args: seen: _FACETS of the newest EXACT rows under all filters."""
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

    columns = list(zip(*seen, strict=True)) or [()] * len(_FACETS)
    for (name, column), values in zip(_FACETED.items(), columns, strict=True):
        if name in query.equal or (name == "tag" and query.tag):  # counted as if this filter were not set
            open_ = _match(visitor, query, without=name).newest(conn, column).limit(EXACT).subquery()
            value = open_.c[0]
            counts = Counter(dict(_tuples(conn, select(value, func.count()).where(value.is_not(None)).group_by(value))))
        else:
            counts = Counter(values)
            del counts[None]
        if name == "tag":
            counts = sum((Counter(dict.fromkeys(some.split("\n"), n)) for some, n in counts.items()), Counter())
        best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FACETS]
        found[name] = [wire.Facet(value=value, label=label(name, value), count=count) for value, count in best]
    return found


def _tuples(conn: Connection, wanted: Select[Any]) -> list[tuple[Any, ...]]:
    """Rows as the driver gives them: ten thousand of SQLAlchemy's cost as much as finding them."""
    return list(conn.execute(wanted).cursor.fetchall())


def _encode(sort: str, rank: Any, n: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([sort, rank, n]).encode()).decode().rstrip("=")


def _decode(cursor: str, sort: str) -> tuple[float, int]:
    try:
        made_for, rank, n = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 2**63 for v in (rank, n))
        if not numbers or not isinstance(n, int):  # NaN fails too
            raise ValueError
    except (ValueError, TypeError, RecursionError) as error:
        raise _foreign(cursor) from error
    if made_for != sort:
        raise InvalidField(
            "This cursor belongs to a list in another order.",
            code="invalid_cursor",
            given=cursor,
            hint=f"Start from the first page with sort={sort}, or ask for the next page in the order of the first.",
        )
    return rank, n


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
