"""Saved views: questions to the gallery under a name, shared by everybody in the workspace. A deleted one can be brought back for a day."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from fanlight import wire
from fanlight.errors import Conflict, InvalidField, unknown
from fanlight.service.context import Context, Visitor
from fanlight.service.search import SORTS
from fanlight.store.database import now
from fanlight.store.ledger import new_id
from fanlight.store.tables import saved_view

MOST = 200
KEPT = 24 * 3600 * 1_000_000  # microseconds for which a deleted one can be brought back
SHOWN_AS = ("cards", "table")


def listed(context: Context, visitor: Visitor) -> list[wire.SavedView]:
    """The visitor's own first, then by name."""
    wanted = select(saved_view).where(saved_view.c.workspace == visitor.workspace, saved_view.c.deleted.is_(None))
    found = [_wire(r, visitor) for r in context.db.read(lambda c: list(c.execute(wanted)))]
    return sorted(found, key=lambda v: (not v.mine, v.name.casefold()))


def save(context: Context, visitor: Visitor, request: wire.ViewRequest) -> wire.SavedView:
    """Errors: invalid_view, name_taken, too_many_views."""
    query = checked(request.query)

    def act(conn: Connection) -> wire.SavedView:
        t = now(conn)
        conn.execute(delete(saved_view).where(saved_view.c.deleted < t - KEPT))
        here = saved_view.c.workspace == visitor.workspace, saved_view.c.deleted.is_(None)
        if conn.execute(select(func.count()).select_from(saved_view).where(*here)).scalar_one() >= MOST:
            raise Conflict(
                f"There are {MOST} saved views already.", code="too_many_views", hint="Delete one that nobody needs."
            )
        _free(conn, visitor, request.name)
        ident = new_id()
        conn.execute(
            insert(saved_view).values(
                id=ident,
                workspace=visitor.workspace,
                principal=visitor.principal,
                name=request.name,
                query=query,
                created=t,
            )
        )
        visitor.did(conn, "view.create", ident, name=request.name)
        return _wire(_find(conn, visitor, ident), visitor)

    return context.db.write(act)


def patch(context: Context, visitor: Visitor, ident: str, changes: wire.ViewPatch) -> wire.SavedView:
    """Another name, or another question under the same name."""
    given: dict[str, Any] = changes.model_dump(exclude_none=True)
    if changes.query is not None:
        given["query"] = checked(changes.query)

    def act(conn: Connection) -> wire.SavedView:
        _find(conn, visitor, ident)
        if changes.name is not None:
            _free(conn, visitor, changes.name, but=ident)
        if given:
            conn.execute(update(saved_view).where(saved_view.c.id == ident).values(**given))
            visitor.did(conn, "view.change", ident, fields=sorted(given))
        return _wire(_find(conn, visitor, ident), visitor)

    return context.db.write(act)


def remove(context: Context, visitor: Visitor, ident: str) -> wire.SavedView:
    """The view that was deleted, as it was."""

    def act(conn: Connection) -> wire.SavedView:
        row = _find(conn, visitor, ident)
        conn.execute(update(saved_view).where(saved_view.c.id == ident).values(deleted=now(conn)))
        visitor.did(conn, "view.delete", ident, name=row.name)
        return _wire(row, visitor)

    return context.db.write(act)


def restore(context: Context, visitor: Visitor, ident: str) -> wire.SavedView:
    """Brings a deleted view back. One that is there is left as it is."""

    def act(conn: Connection) -> wire.SavedView:
        row = _find(conn, visitor, ident, deleted=True)
        if row.deleted is not None:
            _free(conn, visitor, row.name)
            conn.execute(update(saved_view).where(saved_view.c.id == ident).values(deleted=None))
            visitor.did(conn, "view.restore", ident, name=row.name)
        return _wire(row, visitor)

    return context.db.write(act)


def checked(query: dict[str, str]) -> dict[str, str]:
    """The question without what is at its default. Errors: invalid_view."""
    if foreign := sorted(set(query) - set(wire.VIEWED)):
        raise InvalidField(
            "A view holds filters, order and form of the gallery.",
            code="invalid_view",
            given=foreign,
            allowed=list(wire.VIEWED),
        )
    for name, allowed in (("sort", tuple(SORTS)), ("view", SHOWN_AS)):
        if name in query and query[name] not in allowed:
            raise InvalidField(
                f"The gallery has no such {name}.", code="invalid_view", given=query[name], allowed=list(allowed)
            )
    defaults = {"sort": next(iter(SORTS)), "view": SHOWN_AS[0]}
    return {k: v for k, v in query.items() if defaults.get(k) != v}


def _free(conn: Connection, visitor: Visitor, name: str, but: str = "") -> None:
    wanted = select(saved_view.c.name).where(
        saved_view.c.workspace == visitor.workspace, saved_view.c.deleted.is_(None), saved_view.c.id != but
    )
    if name.casefold() in {n.casefold() for n in conn.execute(wanted).scalars()}:
        raise Conflict(
            f"There is a view named “{name}” already.", code="name_taken", given=name, hint="Choose another."
        )


def _find(conn: Connection, visitor: Visitor, ident: str, *, deleted: bool = False) -> Row[Any]:
    row = conn.execute(
        select(saved_view).where(saved_view.c.workspace == visitor.workspace, saved_view.c.id == ident)
    ).first()
    if row is None or (row.deleted is not None and not deleted):
        raise unknown("view", ident, [], hint="It may have been deleted.")
    return row


def _wire(row: Row[Any], visitor: Visitor) -> wire.SavedView:
    return wire.SavedView(
        id=row.id, name=row.name, query=row.query, mine=row.principal == visitor.principal, created=row.created / 1e6
    )
