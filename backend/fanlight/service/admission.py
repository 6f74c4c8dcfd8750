"""API keys: random, shown once, stored hashed; each may do what its scopes say, until it is over or revoked.

A key is `fl_ID_SECRET`. The secret has 256 bits, so that a fast hash of it can be stored. A key acts as the principal `key:ID`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from contextlib import nullcontext
from typing import Any

from sqlalchemy import Connection, Row, func, insert, literal, or_, select, update

from fanlight import wire
from fanlight.errors import Forbidden, Unauthorized, unknown
from fanlight.service.context import SCOPES, Context, Visitor
from fanlight.store import ledger, sight
from fanlight.store.audit import note
from fanlight.store.database import Database, now
from fanlight.store.people import person
from fanlight.store.tables import api_key, audit

DAY = 86_400_000_000
MINUTE = 60_000_000
EXACT = 10_000  # entries that are counted
SERVER = ""  # the workspace, in the audit log, of what concerns the whole server
FORM = re.compile(r"fl_([A-Za-z0-9]{16})_([A-Za-z0-9_-]{43})")


def create(context: Context, visitor: Visitor, request: wire.KeyRequest) -> wire.NewKey:
    """A new key. Errors: forbidden (more than the asker may do itself)."""
    scopes = sorted(set(request.scopes), key=SCOPES.index)
    beyond = [s for s in scopes if not visitor.may(s)]
    if beyond:
        raise Forbidden("A key can hand on only what it may do itself.", code="scope", given=beyond)
    ident, secret = ledger.new_id(), secrets.token_urlsafe(32)
    days = request.expires_in_days

    def act(conn: Connection) -> Row[Any]:
        t = now(conn)
        row: dict[str, Any] = {
            "id": ident,
            "workspace": visitor.workspace,
            "principal": visitor.principal,
            "name": request.name,
        }
        row |= {"secret_hash": _hash(secret), "scopes": scopes}
        conn.execute(insert(api_key), {**row, "created": t, "expires": None if days is None else t + days * DAY})
        note(conn, visitor.workspace, visitor.principal, "key.create", ident, {"name": request.name, "scopes": scopes})
        return conn.execute(select(api_key).where(api_key.c.id == ident)).one()

    return wire.NewKey(**_wire(context.db.write(act)).model_dump(), key=f"fl_{ident}_{secret}")


def listed(context: Context, visitor: Visitor) -> list[wire.Key]:
    """Keys of the workspace, newest first, the revoked ones too."""
    wanted = select(api_key).where(api_key.c.workspace == visitor.workspace).order_by(api_key.c.created.desc())
    return context.db.read(lambda c: [_wire(row) for row in c.execute(wanted.limit(500))])


def revoke(context: Context, visitor: Visitor, ident: str) -> wire.Key:
    """The key opens nothing from now on. Revoking twice is no error."""
    mine = (api_key.c.workspace == visitor.workspace) & (api_key.c.id == ident)

    def act(conn: Connection) -> wire.Key:
        row = conn.execute(select(api_key).where(mine)).first()
        if row is None:
            raise unknown("key", ident, [])
        if row.revoked is None:
            conn.execute(update(api_key).where(mine).values(revoked=now(conn)))
            note(conn, visitor.workspace, visitor.principal, "key.revoke", ident)
        return _wire(conn.execute(select(api_key).where(mine)).one())

    return context.db.write(act)


async def enter(db: Database, given: str) -> Visitor:
    """Who holds this key. Errors: wrong_token, one and the same for keys that are unknown, over and revoked."""
    form = FORM.fullmatch(given)

    def look(conn: Connection) -> tuple[Row[Any], int] | None:
        row = conn.execute(select(api_key).where(api_key.c.id == form[1])).first() if form else None
        return None if row is None else (row, now(conn))

    found = await db.aread(look) if form else None
    if form is None or found is None or not hmac.compare_digest(found[0].secret_hash, _hash(form[2])):
        raise _refused()
    row, t = found
    if row.revoked is not None or (row.expires is not None and row.expires < t):
        raise _refused()
    if row.used is None or t - row.used > MINUTE:
        await db.awrite(lambda c: c.execute(update(api_key).where(api_key.c.id == row.id).values(used=t)))
    return Visitor(f"key:{row.id}", row.workspace, scopes=frozenset(row.scopes), ticket=f"key:{row.id}")


def valid(conn: Connection, ident: str) -> bool:
    """Whether a key still opens something."""
    row = conn.execute(select(api_key.c.revoked, api_key.c.expires).where(api_key.c.id == ident)).first()
    return row is not None and row.revoked is None and (row.expires is None or row.expires >= now(conn))


def entries(
    context: Context, visitor: Visitor, *, before: int | None, limit: int, action: str, subject: str, who: str
) -> wire.Page[wire.AuditEntry]:
    """The audit log, newest first. Args: before: an id; action: its beginning, such as "share"; subject: an id; who: a principal or a person's name.

    An operator sees besides what was done to people and workspaces.
    """
    places = [visitor.workspace, *([SERVER] if visitor.operator else [])]
    wanted = select(audit).where(audit.c.workspace.in_(places)).order_by(audit.c.id.desc()).limit(limit + 1)
    if action:
        wanted = wanted.where(audit.c.action.startswith(action, autoescape=True))
    if subject:
        wanted = wanted.where(audit.c.subject == subject)
    if who:
        named = select(literal("person:").concat(person.c.id)).where(person.c.name == who.casefold())
        wanted = wanted.where(or_(audit.c.principal == who, audit.c.principal.in_(named)))
    every = wanted.with_only_columns(audit.c.id).order_by(None).limit(EXACT + 1).subquery()
    if before is not None:
        wanted = wanted.where(audit.c.id < before)

    def act(conn: Connection) -> tuple[list[Row[Any]], int, dict[str, str]]:
        rows = list(conn.execute(wanted))
        total = int(conn.execute(select(func.count()).select_from(every)).scalar_one())
        return rows, total, called(conn, {r.principal for r in rows})

    with sight.operator(True) if visitor.operator else nullcontext():
        rows, total, names = context.db.read(act)
    items = [
        wire.AuditEntry(
            id=r.id,
            time=r.created / 1e6,
            workspace=r.workspace,
            principal=r.principal,
            who=names.get(r.principal, ""),
            action=r.action,
            subject=r.subject,
            detail=r.detail,
        )  # fmt: skip
        for r in rows[:limit]
    ]
    more = str(items[-1].id) if len(rows) > limit else None
    return wire.Page[wire.AuditEntry](
        items=items, next_cursor=more, total=min(total, EXACT), total_is_floor=total > EXACT
    )


def called(conn: Connection, principals: Collection[str]) -> dict[str, str]:
    """The names of those that are people or keys."""
    found: dict[str, str] = {}
    for kind, table in (("person:", person), ("key:", api_key)):
        ids = [p.removeprefix(kind) for p in principals if p.startswith(kind)]
        wanted = select(table.c.id, table.c.name).where(table.c.id.in_(ids))
        found |= {kind + r.id: r.name for r in (conn.execute(wanted) if ids else ())}
    return found


def _wire(row: Row[Any]) -> wire.Key:
    seconds = {k: None if getattr(row, k) is None else getattr(row, k) / 1e6 for k in ("expires", "revoked", "used")}
    return wire.Key(
        id=row.id, name=row.name, scopes=row.scopes, principal=row.principal, created=row.created / 1e6, **seconds
    )


def _refused() -> Unauthorized:
    return Unauthorized(
        "This key does not open this server.", code="wrong_token", hint="`fanlight keys` lists and makes keys."
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
