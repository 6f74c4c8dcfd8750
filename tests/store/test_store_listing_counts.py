"""Totals and counts of the gallery against a plain count, on both databases, and how SQLite is asked for them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from fanlight.bench import _million, gallery
from fanlight.service import listing, search
from fanlight.service.context import WORKSPACE, Visitor
from fanlight.service.matching import MANY, Match, kept, prepared
from fanlight.service.search import EXACT, Query
from fanlight.store.database import Database
from fanlight.store.sight import SERVER
from fanlight.store.tables import counter, listing as listed

COUNT = 1500
MADE = list(_million.records(COUNT))
WHO = Visitor("somebody")


@pytest.fixture
def filled(url: str) -> Any:
    _million.fill(url, COUNT)
    database = Database(url, sees=SERVER)
    yield database
    database.close()


def asked(conn: Connection, query: Query) -> tuple[int, dict[str, Counter[str]]]:
    """Total and counts, as a page has them."""
    match = prepared(conn, search._match(WHO, query))
    filters = search._set(query)
    n, counts = search._counts(conn, match, [c for c in search._FACETED if c not in filters])
    for name, value in filters.items():
        counts[name] = search._counts(conn, match.without(name, value), [name])[1][name]
    return n, counts


def plain(query: dict[str, str], without: str = "") -> list[_million.Made]:
    """The records under these filters, and whose words begin so."""
    words = listing.tokens(query.get("q", ""))
    found = []
    for made in MADE:
        row = listing.row(made.record, made.tags, made.record["model"])
        equal = {c: row[c] for c in search.DIMENSIONS}
        if any(equal[c] != v for c, v in query.items() if c in search.DIMENSIONS and c != without):
            continue
        if "tag" in query and without != "tag" and query["tag"] not in made.tags:
            continue
        typed = [w for w in row["words"] if len(w) != 21]  # without the keys of filters
        if all(any(t.startswith(w) for t in typed) for w in words):
            found.append(made)
    return found


def test_totals_and_counts_are_those_of_a_plain_count(filled: Database) -> None:
    draw = random.Random(3)
    matched = 0
    for kind in ("plain", "one", "several", "text", "tag") * 8:
        given = gallery.question(kind, draw)
        equal = {k: v for k, v in given.items() if k in search.DIMENSIONS}
        n, counts = filled.read(
            lambda c, e=equal, g=given: asked(c, Query(e, q=g.get("q"), tag=g.get("tag")))  # type: ignore[misc]
        )
        assert n == len(plain(given)), given
        matched += n
        for name, column in gallery.COLUMNS.items():
            expected = Counter(m.record[column] for m in plain(given, without=name))
            assert counts[name] == expected, (given, name)
    assert matched > COUNT


def test_of_more_than_are_counted_the_newest_are(db: Database) -> None:
    def fill(conn: Connection) -> None:
        made = _million.records(1)
        row = listing.row(next(made).record, [], "m")
        rows = [{**row, "explanation": f"x{n}", "model": "old" if n < 7 else "new"} for n in range(EXACT + 5)]
        conn.execute(insert(listed), rows)

    with_all = Match((listing.key("workspace", WORKSPACE),), equal=(("workspace", WORKSPACE), ("shown", True)))
    db.write(fill)
    n, counts = db.read(lambda c: search._counts(c, with_all, ["model"]))
    assert n == EXACT + 1 and counts["model"] == {"new": EXACT - 2, "old": 2}


@pytest.fixture
def sqlite(filled: Database) -> Database:
    if not filled.sqlite:
        pytest.skip("plans of SQLite: on PostgreSQL no index is named")
    return filled


def test_where_most_is_shown_here_the_index_is_not_asked_for_that(sqlite: Database) -> None:
    match = search._match(WHO, Query({"model": "vit-tiny"}))
    assert sqlite.read(lambda c: prepared(c, match)).keys == (listing.key("model", "vit-tiny"),)
    few = COUNT // 2 - 1
    sqlite.write(lambda c: c.execute(update(counter).where(counter.c.name == "shown").values(value=few)))
    assert sqlite.read(lambda c: kept(c, WORKSPACE)) == few
    assert set(sqlite.read(lambda c: prepared(c, match)).keys) == set(match.keys)


def test_no_row_of_another_workspace_is_counted_where_the_index_is_not_asked(sqlite: Database) -> None:
    def move(conn: Connection) -> int:
        there = update(listed).where(listed.c.n <= 100).values(workspace="other")
        return conn.execute(there).rowcount

    assert sqlite.write(move) == 100
    n, _ = sqlite.read(lambda c: asked(c, Query({"outcome": "right"})))
    assert n == sum(m.record["outcome"] == "right" for m in MADE[100:])


def test_a_beginning_becomes_the_words_that_begin_so_unless_they_are_many(sqlite: Database) -> None:
    one, many = (
        sqlite.read(lambda c, q=q: prepared(c, search._match(WHO, Query({}, q=q))))  # type: ignore[misc]
        for q in ("spott", "m000")
    )
    assert ("spotted",) in one.any_of and not one.beginnings
    assert many.beginnings == ("m000",) and COUNT > MANY


def test_what_is_counted_is_read_from_its_index_alone(sqlite: Database) -> None:
    def plan(conn: Connection) -> str:
        match = prepared(conn, search._match(WHO, Query({"model": "vit-tiny"})))
        asked = match.newest(conn, *search._FACETED.values()).limit(EXACT).compile(conn)
        driver = conn.connection.cursor()
        driver.execute("EXPLAIN QUERY PLAN " + str(asked), tuple(asked.params[k] for k in asked.positiontup or ()))
        return " ".join(str(step) for step in driver.fetchall())

    said = sqlite.read(plan)
    assert "COVERING INDEX ix_listing_words_facets" in said and said.index("listing_words VIRTUAL") < said.index(
        "COVERING"
    )


@pytest.mark.parametrize("sort", ["oldest", "faithfulness", "probability"])
def test_an_order_is_walked_along_its_index(sqlite: Database, sort: str) -> None:
    """Whatever statistics say: after an index came that they did not know, every row was sorted."""

    def walked(conn: Connection) -> tuple[list[str], str]:
        match = prepared(conn, search._match(WHO, Query({})))
        said: list[str] = []
        driver: Any = conn.connection.driver_connection
        driver.set_trace_callback(said.append)
        rows = search._rows(conn, Query({}, sort=sort, limit=50), match, None, few=False)
        driver.set_trace_callback(None)
        return [r.explanation for r in rows], said[-1]

    found, statement = sqlite.read(walked)
    assert f"INDEXED BY ix_listing_{search.ORDERED[sort]}" in statement
    ranks = {"oldest": "created", "faithfulness": "faithfulness", "probability": "top_probability"}
    best = sorted(MADE, key=lambda m: m.record[ranks[sort]], reverse=sort != "oldest")[:51]
    assert found == [m.record["id"] for m in best]
