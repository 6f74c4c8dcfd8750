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
from fanlight.service.listing import key, tokens
from fanlight.service.matching import Match, kept, prepared
from fanlight.service.records import explanation_wire, tags_of
from fanlight.store.tables import explanation, listing

EXACT = 10_000  # totals and facets are exact up to here
FACETS = 12
APART = "\x1f"  # between values; a name holds no such character
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
ORDERED = {"oldest": "n", "faithfulness": "faithfulness", "probability": "probability"}
"""The index of SQLite that is walked in an order: its planner, without fresh statistics, may take another and sort a million rows."""
_FACETED = {name: listing.c[name] for name in DIMENSIONS} | {"tag": listing.c.tags}
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
        match = prepared(conn, _match(visitor, query))
        known = kept(conn, visitor.workspace) if not _narrowed(query) else None
        asked = _set(query)
        n, counts = (0, {}) if query.cursor else _counts(conn, match, [c for c in _FACETED if c not in asked])
        if known is None:
            found = counted(conn, match.newest(conn, listing.c.n)) if query.cursor else n
        else:
            found = known
        rows = _rows(conn, query, match, start, few=found <= EXACT)
        more = len(rows) > query.limit
        rows = rows[: query.limit]
        records = {
            r.id: r
            for r in conn.execute(select(explanation).where(explanation.c.id.in_([r.explanation for r in rows])))
        }
        tags = tags_of(conn, list(records))
        return wire.Page[wire.Explanation](
            items=[
                explanation_wire(context, records[i], tags[i]) for i in (r.explanation for r in rows) if i in records
            ],
            next_cursor=_encode(query.sort, rows[-1].rank, rows[-1].n) if more else None,
            total=min(found, EXACT) if known is None else known,
            total_is_floor=known is None and found > EXACT,
            facets={} if query.cursor else _facets(context, conn, match, asked, counts),
        )

    return context.db.read(act)


def ids(context: Context, visitor: Visitor, query: Query, most: int) -> list[str]:
    """The explanations of a gallery in its order, at most `most` and one more. Errors: invalid_sort, invalid_filter."""
    _known(context, query.equal)
    listing_service.refresh(context)

    def act(conn: Connection) -> list[str]:
        match = prepared(conn, _match(visitor, query))
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
            along = "trust" if query.sort == "faithfulness" and "trust" in query.equal else ORDERED[query.sort]
            wanted = select(*columns).where(match.condition(conn))
            wanted = wanted.with_hint(listing, f"INDEXED BY ix_listing_{along}", "sqlite")
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


def _match(visitor: Visitor, query: Query) -> Match:
    equal = {name: value for name, value in query.equal.items() if name != "state"}
    if query.tag:
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
    states_ = (tuple(key("state", s) for s in wanted),) if wanted else ()
    return Match(tuple(keys), states_, typed, tuple(columns.items()))


def _narrowed(query: Query) -> bool:
    return bool(query.equal or query.q or query.tag or query.owner)


def _set(query: Query) -> dict[str, str]:
    """The filters with counts that are set."""
    equal = {name: value for name, value in query.equal.items() if name in DIMENSIONS}
    return equal | ({"tag": query.tag} if query.tag else {})


def counted(conn: Connection, wanted: Select[Any]) -> int:
    """How many rows, counted no further than one past EXACT."""
    return int(conn.execute(select(func.count()).select_from(wanted.limit(EXACT + 1).subquery())).scalar_one())


def _counts(conn: Connection, match: Match, names: Sequence[str]) -> tuple[int, dict[str, Counter[str]]]:
    """How many match, up to one past EXACT, and of the newest EXACT how many have each value of these dimensions.

    One row of long texts: ten thousand rows of several values cost more to make, and to be looked through for cycles, than to find.
    """
    seen = match.newest(conn, *(_FACETED[name] for name in names)).limit(EXACT + 1).subquery()
    texts = (func.aggregate_strings(func.coalesce(column, ""), APART) for column in seen.c)
    n, *columns = conn.execute(select(func.count(), *texts).select_from(seen)).one()
    counts = {name: Counter((text or "").split(APART)[:EXACT]) for name, text in zip(names, columns, strict=True)}
    for values in counts.values():
        del values[""]
    return n, counts


def _facets(
    context: Context, conn: Connection, match: Match, asked: Mapping[str, str], counts: Mapping[str, Counter[str]]
) -> dict[str, list[wire.Facet]]:
    """Counts per value of each dimension, under all the other filters.

    Args: asked: the filters with counts that are set; counts: of the other dimensions, under all filters.
    """
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

    for name in _FACETED:
        if name in asked:  # counted as if this filter were not set
            values = _counts(conn, match.without(name, asked[name]), [name])[1][name]
        else:
            values = counts[name]
        if name == "tag":
            values = sum((Counter(dict.fromkeys(some.split("\n"), n)) for some, n in values.items()), Counter())
        best = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[:FACETS]
        found[name] = [wire.Facet(value=value, label=label(name, value), count=count) for value, count in best]
    return found


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
