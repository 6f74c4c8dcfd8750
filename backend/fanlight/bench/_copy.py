"""Very many rows into an empty PostgreSQL table: by COPY, and its indices and foreign keys after the rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Table, text

from fanlight.store.tables import listing

INDICES = text(
    "SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS made FROM pg_index i "
    "LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u', 'x') "
    "WHERE i.indrelid = CAST(:table AS regclass) AND c.oid IS NULL"
)


@contextmanager
def bare(conn: Connection, tables: Collection[Table]) -> Iterator[None]:
    """Takes the indices that no constraint needs from these tables, and makes them anew at the end, over all rows at once.

    COPY does not go through row-level security; the owner of a table is let past it meanwhile.
    """
    taken = []
    for table in tables:
        conn.exec_driver_sql(f'ALTER TABLE "{table.name}" NO FORCE ROW LEVEL SECURITY')
        taken += list(conn.execute(INDICES, {"table": table.name}))
    for index in taken:
        conn.exec_driver_sql(f"DROP INDEX {index.name}")
    yield
    conn.exec_driver_sql("SET LOCAL maintenance_work_mem = '512MB'")
    for index in taken:
        conn.exec_driver_sql(index.made)
    for table in tables:
        conn.exec_driver_sql(f'ALTER TABLE "{table.name}" FORCE ROW LEVEL SECURITY')


def copy(conn: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Args: rows: with the same columns each; those that are not named get their default."""
    if not rows:
        return
    names = list(rows[0])
    columns = ", ".join(f'"{name}"' for name in names)
    driver: Any = conn.connection.cursor()
    with driver as cursor, cursor.copy(f'COPY "{table.name}" ({columns}) FROM STDIN') as into:
        for row in rows:
            into.write_row([_said(table, name, row[name]) for name in names])


def _said(table: Table, name: str, value: Any) -> Any:
    if table is listing and name == "words":  # a tsvector, as `store/words.py` quotes it
        return " ".join(f"'{word}'" for word in value)
    return json.dumps(value) if isinstance(value, (dict, list)) else value
