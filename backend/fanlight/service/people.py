"""Accounts: made, listed, changed and removed by whoever runs the server; a password also by its person."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from fanlight import wire
from fanlight.errors import Conflict, Forbidden, InvalidField, unknown
from fanlight.service import identities, passwords
from fanlight.service.admission import SERVER
from fanlight.service.context import ROLES, Context, Visitor
from fanlight.service.entry import Entry, no_workspace, principal
from fanlight.store import sight
from fanlight.store.audit import note
from fanlight.store.database import now
from fanlight.store.ledger import new_id
from fanlight.store.people import member, person, session, workspace
from fanlight.store.tables import api_key

MOST = 10_000


def create(context: Context, visitor: Visitor, request: wire.PersonRequest) -> wire.Person:
    """Errors: weak_password, name_taken, no_oidc, subject_taken."""
    if request.password is None and not request.subject:
        raise InvalidField(
            "An account has a password, or a subject at the provider of identities.", code="missing", allowed=["password", "subject"]
        )  # fmt: skip
    stored = passwords.NOBODY
    if request.password is not None:
        stored = passwords.hashed(passwords.fit(request.password, request.name))
    ident, issuer = new_id(), context.settings.oidc_issuer

    def act(conn: Connection) -> wire.Person:
        if conn.execute(select(person.c.id).where(person.c.name == request.name)).first() is not None:
            raise Conflict(
                f"There is an account named “{request.name}” already.", code="name_taken", given=request.name
            )
        row = {
            "id": ident,
            "name": request.name,
            "password": stored,
            "operator": request.operator,
            "created": now(conn),
        }
        conn.execute(insert(person), row)
        said: dict[str, Any] = {"operator": request.operator}
        if request.subject:
            identities.link(conn, issuer, request.subject, ident)
            said["subject"] = request.subject
        note(conn, SERVER, visitor.principal, "person.create", ident, said)
        return _one(conn, ident, issuer)

    return context.db.write(act)


def listed(context: Context, visitor: Visitor) -> list[wire.Person]:
    """By name."""

    def act(conn: Connection) -> list[wire.Person]:
        rows = list(conn.execute(select(person).order_by(person.c.name).limit(MOST)))
        belongs, linked = memberships(conn, None), identities.subjects(conn, context.settings.oidc_issuer)
        return [_wire(r, belongs.get(r.id, []), linked.get(r.id, "")) for r in rows]

    with sight.operator(visitor.operator):
        return context.db.read(act)


def patch(context: Context, visitor: Visitor, ident: str, changes: wire.PersonPatch) -> wire.Person:
    """A new password or a closed account ends every session and, where it is closed, every key that the person made; another subject the sessions.

    Errors: unknown_person, weak_password, yourself, no_oidc, subject_taken.
    """
    issuer = context.settings.oidc_issuer
    row = context.db.read(lambda c: find(c, ident))
    fresh = None if changes.password is None else passwords.hashed(passwords.fit(changes.password, row.name))
    mine = visitor.principal == principal(row.id)
    if mine and (changes.disabled or changes.operator is False):
        raise Conflict("You would shut yourself out.", code="yourself", hint="Another operator can do that.")

    def act(conn: Connection) -> wire.Person:
        find(conn, row.id)
        values: dict[str, Any] = {}
        if fresh is not None:
            values["password"] = fresh
        if changes.disabled is not None:
            values["disabled"] = now(conn) if changes.disabled else None
        if changes.operator is not None:
            values["operator"] = changes.operator
        if values:
            conn.execute(update(person).where(person.c.id == row.id).values(**values))
        if changes.subject is not None:
            identities.link(conn, issuer, changes.subject, row.id)
        if fresh is not None or changes.disabled or changes.subject is not None:
            conn.execute(delete(session).where(session.c.person == row.id))
        if changes.disabled:
            close_keys(conn, visitor, row.id)
        said = {"disabled": changes.disabled, "operator": changes.operator, "subject": changes.subject}
        said["password"] = True if fresh else None
        detail = {k: v for k, v in said.items() if v is not None}
        note(conn, SERVER, visitor.principal, "person.change", row.id, detail)
        return _one(conn, row.id, issuer)

    with sight.operator(visitor.operator):
        return context.db.write(act)


def remove(context: Context, visitor: Visitor, ident: str) -> wire.Person:
    """The account, its sessions, memberships and keys are gone; what the person computed stays. Errors: unknown_person, yourself."""

    def act(conn: Connection) -> wire.Person:
        row = find(conn, ident)
        if visitor.principal == principal(row.id):
            raise Conflict("You would shut yourself out.", code="yourself", hint="Another operator can do that.")
        gone = _one(conn, row.id, context.settings.oidc_issuer)
        close_keys(conn, visitor, row.id)
        identities.forsake(conn, row.id)
        for table in (session, member):
            conn.execute(delete(table).where(table.c.person == row.id))
        conn.execute(delete(person).where(person.c.id == row.id))
        note(conn, SERVER, visitor.principal, "person.remove", row.id, {"name": row.name})
        return gone

    with sight.operator(visitor.operator):
        return context.db.write(act)


async def change_password(context: Context, entry: Entry, visitor: Visitor, request: wire.PasswordChange) -> None:
    """Of the asker; every other session ends. Errors: not_a_person, wrong_password, weak_password, too_busy."""
    ident = own(visitor)
    row = await context.db.aread(lambda c: find(c, ident))
    limit = (row.name, "password")
    entry.patience(limit)
    if not await entry.compared(request.old, row.password, limit):
        entry.failed(limit)
        raise Forbidden("The old password is another.", code="wrong_password")
    stored = await entry.hashed(passwords.fit(request.new, row.name))

    def act(conn: Connection) -> None:
        conn.execute(update(person).where(person.c.id == ident).values(password=stored))
        others = session.c.person == ident, session.c.secret_hash != visitor.ticket.removeprefix("session:")
        conn.execute(delete(session).where(*others))
        note(conn, SERVER, visitor.principal, "person.password", ident)

    await context.db.awrite(act)


def me(context: Context, visitor: Visitor) -> wire.Me:
    """Who asks, where, and where else they could."""

    def act(conn: Connection) -> wire.Me:
        mine = memberships(conn, visitor.principal.removeprefix("person:")) if visitor.name else {}
        belongs = next(iter(mine.values()), [])
        called = conn.execute(select(workspace.c.name).where(workspace.c.id == visitor.workspace)).scalar()
        return wire.Me(
            principal=visitor.principal,
            name=visitor.name,
            workspace=visitor.workspace,
            workspace_name=called or "",
            role=next((m.role for m in belongs if m.workspace == visitor.workspace), None),
            scopes=sorted(visitor.scopes),
            operator=visitor.operator,
            workspaces=belongs,
        )

    return context.db.read(act)


def switch(context: Context, visitor: Visitor, wanted: str) -> wire.Me:
    """The session's current workspace from now on. Errors: unknown_workspace, not_a_person."""
    ident = own(visitor)

    def act(conn: Connection) -> str:
        role = select(member.c.role).where(member.c.person == ident, member.c.workspace == wanted)
        found = conn.execute(role).scalar()
        if found is None:
            raise no_workspace(wanted)
        mine = session.c.secret_hash == visitor.ticket.removeprefix("session:")
        conn.execute(update(session).where(mine).values(current=wanted))
        note(conn, SERVER, visitor.principal, "person.switch", ident, {"workspace": wanted})
        return str(found)

    role = context.db.write(act)
    seen = Visitor(
        visitor.principal, wanted, person=True, scopes=frozenset(ROLES[role]), operator=visitor.operator,
        name=visitor.name, ticket=visitor.ticket,
    )  # fmt: skip
    return me(context, seen)


def find(conn: Connection, named: str) -> Row[Any]:
    """By id or by name."""
    row = conn.execute(select(person).where(or_(person.c.id == named, person.c.name == named.casefold()))).first()
    if row is None:
        raise unknown("person", named, [], hint="`fanlight people` lists them.")
    return row


def memberships(conn: Connection, of: str | None) -> dict[str, list[wire.Membership]]:
    """Per person where they belong. Args: of: one person's id; None: everybody's."""
    wanted = select(member.c.person, member.c.role, workspace).join(workspace, workspace.c.id == member.c.workspace)
    if of is not None:
        wanted = wanted.where(member.c.person == of)
    found: dict[str, list[wire.Membership]] = {}
    for r in conn.execute(wanted.order_by(workspace.c.name, workspace.c.id)):
        found.setdefault(r.person, []).append(wire.Membership(workspace=r.id, name=r.name, role=r.role))
    return found


def close_keys(conn: Connection, visitor: Visitor, ident: str, within: str | None = None) -> None:
    """Revokes the keys that a person made, in one workspace or in all of them."""
    theirs = [api_key.c.principal == principal(ident), api_key.c.revoked.is_(None)]
    if within is not None:
        theirs.append(api_key.c.workspace == within)
    for row in conn.execute(select(api_key.c.id, api_key.c.workspace).where(*theirs)).all():
        conn.execute(update(api_key).where(api_key.c.id == row.id).values(revoked=now(conn)))
        note(conn, row.workspace, visitor.principal, "key.revoke", row.id, {"because": "its maker left"})


def own(visitor: Visitor) -> str:
    """The person's id. Errors: not_a_person."""
    if not visitor.ticket.startswith("session:"):
        raise Conflict(
            "Only somebody who has logged in with a name can do that.",
            code="not_a_person",
            given=visitor.principal,
            hint="A program names its workspace in the header Fanlight-Workspace.",
        )
    return visitor.principal.removeprefix("person:")


def _one(conn: Connection, ident: str, issuer: str) -> wire.Person:
    row = conn.execute(select(person).where(person.c.id == ident)).one()
    linked = identities.subjects(conn, issuer, ident)
    return _wire(row, memberships(conn, ident).get(ident, []), linked.get(ident, ""))


def _wire(row: Row[Any], belongs: list[wire.Membership], subject: str) -> wire.Person:
    return wire.Person(
        id=row.id, name=row.name, operator=row.operator, disabled=row.disabled is not None, created=row.created / 1e6,
        seen=None if row.seen is None else row.seen / 1e6, workspaces=belongs, subject=subject,
    )  # fmt: skip
