"""The fill of PostgreSQL by COPY leaves what plain inserts leave: rows, indices and row-level security."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, create_engine, inspect, select, text

from fanlight.bench import _million
from fanlight.service import listing
from fanlight.store.migrate import upgrade
from fanlight.store.tables import explanation, listing as listed, tag

COUNT = 300
TABLES = ("explanation", "listing", "tag")


def shape(conn: Connection) -> tuple[dict[str, set[str]], list[bool]]:
    indices = {t: {str(i["name"]) for i in inspect(conn).get_indexes(t)} for t in TABLES}
    forced = text("select relforcerowsecurity from pg_class where relname in ('explanation', 'listing', 'tag')")
    return indices, list(conn.execute(forced).scalars())


@pytest.mark.postgres
def test_copied_rows_are_those_that_inserts_write(walled_url: str) -> None:
    upgrade(walled_url)
    engine = create_engine(walled_url)
    with engine.connect() as conn:
        before = shape(conn)
    _million.fill(walled_url, COUNT)
    made = list(_million.records(COUNT))
    with engine.begin() as conn:
        assert shape(conn) == before and all(before[1]) and before[0]["listing"]
        conn.execute(text("select set_config('fanlight.server', 'on', true)"))
        records = conn.execute(select(explanation).order_by(explanation.c.created)).mappings().all()
        assert [{k: r[k] for k in m.record} for r, m in zip(records, made, strict=True)] == [m.record for m in made]
        tags = {(r.explanation, r.tag) for r in conn.execute(select(tag))}
        assert tags == {(m.record["id"], t) for m in made for t in m.tags} and tags
        query = select(listed.c.explanation, text("tsvector_to_array(words)")).order_by(listed.c.n)
        words = [(i, sorted(w)) for i, w in conn.execute(query)]
        rows = [listing.row(m.record, m.tags, m.record["model"]) for m in made]
        assert words == [(r["explanation"], sorted(r["words"])) for r in rows]
    engine.dispose()
