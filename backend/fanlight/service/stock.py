"""Which blobs the database needs: what a backup takes along, and what `fanlight gc` keeps.

Every row is searched, not only the table of references, so that nothing is lost where a reference was forgotten. A share that is revoked or
over needs nothing any more, and neither does a job that ended: its record names what came of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, Connection, Select, String, Table, Text, and_, select
from sqlalchemy.sql.elements import ColumnElement

from fanlight.artifact import canonical
from fanlight.blobs import Blobs
from fanlight.store.database import Database, now
from fanlight.store.ledger import OPEN
from fanlight.store.people import person, session
from fanlight.store.tables import api_key, audit, event, job, listing, metadata, reference, share

DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
SILENT = {api_key, audit, event, listing, person, session}  # what happened, and what follows from other tables
GRACE = 86_400.0  # seconds; a result is put a moment before the row that names it
LEAST_GRACE = 3600.0


@dataclass(frozen=True)
class Collected:
    """What a collection found. `removed` counts only where it was not a dry run; bytes are those of the unneeded."""

    kept: int
    young: int
    unneeded: int
    size: int
    removed: int


def needed(conn: Connection) -> set[str]:
    """Digests that any row names; may hold some that are no blobs."""
    found: set[str] = set()
    for table in metadata.sorted_tables:
        if table not in SILENT:
            for text in _words(conn, table):
                found.update(DIGEST.findall(text))
    return found


def _words(conn: Connection, table: Table) -> Iterator[str]:
    columns = [c for c in table.columns if isinstance(c.type, (String, Text, JSON)) and _long(c.type)]
    if not columns:
        return
    rows = conn.execution_options(yield_per=1000).execute(_alive(conn, table, select(*columns)))
    for row in rows:
        for value in row:
            if isinstance(value, str):
                yield value
            elif value is not None:
                yield canonical(value).decode()


def _long(kind: Any) -> bool:
    """Whether a digest fits."""
    return getattr(kind, "length", None) is None or kind.length >= 64


def _alive(conn: Connection, table: Table, wanted: Select[Any]) -> Select[Any]:
    live = and_(share.c.revoked.is_(None), share.c.expires > now(conn))
    if table is share:
        return wanted.where(live)
    if table is job:
        return wanted.where(job.c.state.in_(OPEN))
    if table is reference:
        dead = select(("share:" + share.c.id).label("owner")).where(~live)
        condition: ColumnElement[bool] = reference.c.owner.not_in(dead)
        return wanted.where(condition)
    return wanted


def collect(db: Database, blobs: Blobs, *, grace: float = GRACE, dry: bool = True) -> Collected:
    """Finds the blobs that nothing needs and that are older than `grace` seconds; deletes them unless `dry`.

    Safe beside a running server: a blob that is put again counts as new, and each is looked at again before it goes.
    """
    # The list first: what is put afterwards is not in it, and what it needs is known from a later look.
    there = list(blobs.listed())
    keep = db.read(needed)
    before = time.time() - max(grace, LEAST_GRACE)
    spare = [b for b in there if b.name not in keep]
    old = [b for b in spare if b.written <= before]
    removed = 0
    if not dry and old:
        keep = db.read(needed)
        removed = sum(blobs.collect(b.name, before) for b in old if b.name not in keep)
    return Collected(len(there) - len(spare), len(spare) - len(old), len(old), sum(b.size for b in old), removed)
