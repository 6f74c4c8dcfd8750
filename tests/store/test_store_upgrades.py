"""From every released revision with something in every table: nothing of it is lost or changed on the way to the newest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Column, Float, Integer, MetaData, Numeric, Table, create_engine, insert, select

from fanlight.store.database import Database
from fanlight.store.migrate import current, revisions, upgrade
from fanlight.store.tables import event, metadata

NAMES = ("one", "two")  # of rows: every text is its row's name, so that what refers to something finds it
LIVING = {"workspace": "default", "state": "succeeded", "live": True, "tag": "keep", "kind": "explain"}
GONE = {("explanation", "search")}  # by 0003: the words are listed anew
MADE = {"workspace": 1}  # by 0008: the one that everything belonged to


def filled(table: Table, name: str) -> dict[str, Any]:
    """A row of whatever columns there are."""
    counted = [c for c in table.primary_key.columns if isinstance(c.type, Integer)]
    alone = counted if len(table.primary_key.columns) == 1 else []
    return {c.name: _value(c, name) for c in table.columns if c not in set(alone)}


def _value(column: Column[Any], name: str) -> Any:
    if column.name in LIVING and not (column.name == "kind" and column.table.name == "input"):
        return LIVING[column.name]
    if isinstance(column.type, JSON):
        return {"name": name, "digest": "ab" * 32}
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, (Float, Numeric)) and not isinstance(column.type, Integer):
        return 0.5
    if isinstance(column.type, Integer):
        return NAMES.index(name) + 1
    return name


def reflected(url: str) -> MetaData:
    found, engine = MetaData(), create_engine(url)
    found.reflect(engine, only=lambda n, _: not n.startswith("listing_words") and n != "alembic_version")
    engine.dispose()
    for table in found.tables.values():
        for column in table.columns:
            known = metadata.tables.get(table.name)
            if known is not None and column.name in known.columns and column.name != "words":
                column.type = known.columns[column.name].type  # SQLite has forgotten that JSON is JSON
    return found


def contents(url: str, tables: Mapping[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by table, of these columns, in an order of their own."""
    found, engine = reflected(url), create_engine(url)
    with engine.connect() as conn:
        rows = {
            name: [dict(r._mapping) for r in conn.execute(select(*(found.tables[name].c[c] for c in columns)))]
            for name, columns in tables.items()
        }
    engine.dispose()
    return {name: sorted(some, key=lambda r: json.dumps(r, default=str, sort_keys=True)) for name, some in rows.items()}


@pytest.mark.parametrize("revision", revisions())
def test_what_is_stored_at_a_released_revision_is_there_after_the_upgrade(url: str, revision: str) -> None:
    upgrade(url, revision)
    old, engine = reflected(url), create_engine(url)
    assert len(old.tables) > 15
    with engine.begin() as conn:
        for table in old.sorted_tables:
            for name in NAMES:
                conn.execute(insert(table), filled(table, name))
    engine.dispose()
    columns = {
        t.name: [c.name for c in t.columns if (t.name, c.name) not in GONE and c.name != "words"]
        for t in old.tables.values()
        if t.name != "event"  # 0003 adds to them
    }
    before = contents(url, columns)
    assert all(len(rows) == len(NAMES) + MADE.get(n, 0) for n, rows in before.items()), {
        n: len(r) for n, r in before.items()
    }
    upgrade(url)
    assert current(url) == revisions()[-1]
    after = contents(url, columns)
    assert {n: len(r) for n, r in after.items()} == {n: len(r) for n, r in before.items()}
    assert after == before
    db = Database(url)
    try:
        told = db.read(lambda c: [r.data for r in c.execute(select(event).order_by(event.c.id))])
        assert len(told) >= len(NAMES)
        if revision < "0003":
            assert {e["explanation"] for e in told if e.get("type") == "listed"} == set(NAMES)
        for table in metadata.sorted_tables:  # every column that the code knows can be read
            db.read(lambda c, t=table: c.execute(select(t)).all())  # type: ignore[misc]
    finally:
        db.close()
