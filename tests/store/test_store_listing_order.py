"""A filter by trust that excludes the order by faithfulness: read along an index of both, in the order of a plain sort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from fanlight.bench import _million
from fanlight.service import search
from fanlight.service.context import WORKSPACE
from fanlight.service.listing import key
from fanlight.service.matching import Match
from fanlight.service.search import Query

COUNT = 1500
MATCH = Match(
    (key("workspace", WORKSPACE), key("trust", "below"), key("shown", "yes")),
    equal=(("workspace", WORKSPACE), ("trust", "below"), ("shown", True)),
)
MADE = list(_million.records(COUNT))


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path: Path = tmp_path_factory.mktemp("order") / "gallery.sqlite"
    _million.fill(f"sqlite:///{path}", COUNT)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as conn:
        yield conn
    engine.dispose()


def test_pages_along_the_order_are_those_of_a_plain_sort(conn: Connection) -> None:
    below = [
        (m.record["faithfulness"], n, m.record["id"])
        for n, m in enumerate(MADE, 1)
        if m.record["trust_class"] == "below"
    ]
    expected = [explanation for *_, explanation in sorted(below, reverse=True)]
    found: list[str] = []
    start = None
    while True:
        rows = search._rows(conn, Query({}, sort="faithfulness", limit=100), MATCH, start, few=False)
        page = rows[:100]
        found += [r.explanation for r in page]
        if len(rows) <= 100:
            break
        start = (page[-1].rank, page[-1].n)
    assert found == expected and len(found) > 200


def test_the_order_below_the_floor_is_read_from_its_index(conn: Connection) -> None:
    plan = conn.execute(
        text(
            "EXPLAIN QUERY PLAN SELECT explanation FROM listing WHERE workspace = :w AND shown = 1 AND trust = 'below' "
            "ORDER BY faithfulness DESC, n DESC LIMIT 49"
        ),
        {"w": WORKSPACE},
    ).all()
    said = " ".join(str(step.detail) for step in plan)
    assert "ix_listing_trust" in said and "TEMP B-TREE" not in said
