"""Offering a data set of the server to a workspace: its rows are copied, so that every query can stay within one workspace; blobs are shared."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, delete, insert, literal, select

from fanlight.errors import unknown
from fanlight.service.context import WORKSPACE
from fanlight.store.tables import dataset, input_, reference, sample, unreadable

COMES_ALONG = ("photographs", "field-guide")
"""What comes with Fanlight is nobody's secret."""


def offer(conn: Connection, name: str, to: str) -> None:
    """Copies the newest version of a data set of `default`; what the workspace had of it before is replaced. Errors: unknown_dataset."""
    if to == WORKSPACE:
        return
    known = conn.execute(select(dataset.c.id).where(dataset.c.workspace == WORKSPACE)).scalars().all()
    if name not in known:
        raise unknown("dataset", name, known)
    for table, column in ((dataset, dataset.c.id), (sample, sample.c.dataset), (unreadable, unreadable.c.dataset)):
        conn.execute(delete(table).where(table.c.workspace == to, column == name))
        _copy(conn, table, to, column == name)
    used = select(sample.c.input).where(sample.c.workspace == to, sample.c.dataset == name)
    there = select(input_.c.id).where(input_.c.workspace == to)
    _copy(conn, input_, to, input_.c.id.in_(used), input_.c.id.not_in(there))
    owners = select(literal("input:") + sample.c.input).where(sample.c.workspace == to, sample.c.dataset == name)
    held = select(literal(1)).where(*_same(to)).exists()
    _copy(conn, reference, to, reference.c.owner.in_(owners), ~held)


_theirs = reference.alias()


def _same(to: str) -> tuple[Any, ...]:
    return _theirs.c.workspace == to, _theirs.c.digest == reference.c.digest, _theirs.c.owner == reference.c.owner


def renew(conn: Connection, name: str) -> None:
    """After a new version: every workspace that has the data set gets it."""
    others = select(dataset.c.workspace).where(dataset.c.id == name, dataset.c.workspace != WORKSPACE)
    for to in conn.execute(others).scalars().all():
        offer(conn, name, to)


def _copy(conn: Connection, table: Table, to: str, *where: Any) -> None:
    """Rows of `default` as rows of `to`."""
    columns = [literal(to).label(c.name) if c.name == "workspace" else c for c in table.columns]
    rows = select(*columns).where(table.c.workspace == WORKSPACE, *where)
    conn.execute(insert(table).from_select([c.name for c in table.columns], rows))
