"""Workspaces and who belongs to them. Owners look after the members of theirs, operators after all of them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from fanlight import wire
from fanlight.errors import Conflict, Forbidden, unknown
from fanlight.service import people
from fanlight.service.admission import SERVER
from fanlight.service.context import Context, Visitor
from fanlight.service.entry import no_workspace, principal
from fanlight.service.offers import COMES_ALONG, offer
from fanlight.store import ledger, sight
from fanlight.store.audit import note
from fanlight.store.database import now
from fanlight.store.people import member, person, workspace
from fanlight.store.tables import dataset, job

MOST = 1000


def create(context: Context, visitor: Visitor, request: wire.WorkspaceRequest) -> wire.Workspace:
    """Errors: workspace_taken, unknown_dataset."""

    def act(conn: Connection) -> wire.Workspace:
        if conn.execute(select(workspace.c.id).where(workspace.c.id == request.id)).first() is not None:
            raise Conflict(f"There is a workspace “{request.id}” already.", code="workspace_taken", given=request.id)
        conn.execute(insert(workspace), {"id": request.id, "name": request.name, "created": now(conn)})
        offered = request.datasets
        if offered is None:
            there = select(dataset.c.id).where(dataset.c.workspace == "default", dataset.c.id.in_(COMES_ALONG))
            offered = list(conn.execute(there).scalars())
        for name in offered:
            offer(conn, name, request.id)
        note(conn, SERVER, visitor.principal, "workspace.create", request.id, {"datasets": offered})
        return _one(conn, request.id)

    with sight.operator(visitor.operator):
        return context.db.write(act)


def listed(context: Context, visitor: Visitor) -> list[wire.Workspace]:
    """All of the server, by id."""

    def act(conn: Connection) -> list[wire.Workspace]:
        ids = conn.execute(select(workspace.c.id).order_by(workspace.c.id).limit(MOST)).scalars().all()
        return [_one(conn, i) for i in ids]

    with sight.operator(visitor.operator):
        return context.db.read(act)


def one(context: Context, visitor: Visitor, ident: str) -> wire.Workspace:
    """Errors: unknown_workspace."""
    with _reach(visitor, ident):
        return context.db.read(lambda c: _one(c, _mine(c, visitor, ident)))


def patch(context: Context, visitor: Visitor, ident: str, changes: wire.WorkspacePatch) -> wire.Workspace:
    """Its owners name it; quotas and weight are for operators. Errors: unknown_workspace, scope."""
    given = changes.model_dump(exclude_none=True)
    if not visitor.operator and (beyond := sorted(given.keys() - {"name"})):
        raise Forbidden(
            "How much a workspace may ask for is set by whoever runs the server.",
            code="scope",
            given=beyond,
            allowed=["name"],
            hint="Ask an operator for more.",
        )
    values = {k: (v or None) for k, v in given.items()}

    def act(conn: Connection) -> wire.Workspace:
        _mine(conn, visitor, ident)
        if values:
            conn.execute(update(workspace).where(workspace.c.id == ident).values(**values))
            note(conn, SERVER, visitor.principal, "workspace.change", ident, given)
        return _one(conn, ident)

    with _reach(visitor, ident):
        return context.db.write(act)


def offer_dataset(context: Context, visitor: Visitor, ident: str, name: str) -> wire.Workspace:
    """Makes a data set of the server readable in a workspace. Errors: unknown_workspace, unknown_dataset."""

    def act(conn: Connection) -> wire.Workspace:
        _mine(conn, visitor, ident)
        offer(conn, name, ident)
        note(conn, SERVER, visitor.principal, "workspace.offer", ident, {"dataset": name})
        return _one(conn, ident)

    with sight.operator(visitor.operator):  # it is read in `default`
        return context.db.write(act)


def members(context: Context, visitor: Visitor, ident: str) -> list[wire.Member]:
    """By name. Errors: unknown_workspace."""

    def act(conn: Connection) -> list[wire.Member]:
        _mine(conn, visitor, ident)
        wanted = select(member, person.c.name, person.c.disabled).join(person, person.c.id == member.c.person)
        rows = conn.execute(wanted.where(member.c.workspace == ident).order_by(person.c.name))
        return [_member(r) for r in rows]

    with _reach(visitor, ident):
        return context.db.read(act)


def appoint(context: Context, visitor: Visitor, ident: str, named: str, role: wire.Role) -> wire.Member:
    """Adds a person, or gives another role. Errors: unknown_workspace, unknown_person, last_owner."""

    def act(conn: Connection) -> wire.Member:
        _mine(conn, visitor, ident)
        who = people.find(conn, named)
        here = member.c.workspace == ident, member.c.person == who.id
        before = conn.execute(select(member.c.role).where(*here)).scalar()
        if before == "owner" and role != "owner":
            _others(conn, visitor, ident, who.id)
        if before is None:
            conn.execute(insert(member).values(workspace=ident, person=who.id, role=role, created=now(conn)))
        else:
            conn.execute(update(member).where(*here).values(role=role))
            if before == "owner" and role != "owner":
                people.close_keys(conn, visitor, who.id, within=ident)
        note(conn, ident, visitor.principal, "member.set", principal(who.id), {"role": role, "before": before})
        return _found(conn, ident, who.id)

    with _reach(visitor, ident):
        return context.db.write(act)


def dismiss(context: Context, visitor: Visitor, ident: str, named: str) -> wire.Member:
    """Takes a person out; the keys they made in it end. Errors: unknown_workspace, unknown_person, last_owner."""

    def act(conn: Connection) -> wire.Member:
        _mine(conn, visitor, ident)
        who = people.find(conn, named)
        here = member.c.workspace == ident, member.c.person == who.id
        gone = conn.execute(select(member.c.role).where(*here)).scalar()
        if gone is None:
            raise unknown("person", named, [], hint="The members of the workspace are listed by their owners.")
        if gone == "owner":
            _others(conn, visitor, ident, who.id)
        shown = _found(conn, ident, who.id)
        conn.execute(delete(member).where(*here))
        people.close_keys(conn, visitor, who.id, within=ident)
        note(conn, ident, visitor.principal, "member.remove", principal(who.id), {"before": gone})
        return shown

    with _reach(visitor, ident):
        return context.db.write(act)


def _reach(visitor: Visitor, ident: str) -> AbstractContextManager[None]:
    """An operator reaches every workspace, everybody else their own: of another they see nothing, not even that it is there."""
    return sight.operator(True) if visitor.operator and ident != visitor.workspace else nullcontext()


def leave(context: Context, visitor: Visitor, ident: str) -> wire.Member:
    """Of one's own will; of the last owner not even then. Errors: unknown_workspace, last_owner, not_a_person."""
    me = people.own(visitor)

    def act(conn: Connection) -> wire.Member:
        here = member.c.workspace == ident, member.c.person == me
        role = conn.execute(select(member.c.role).where(*here)).scalar()
        if role is None:
            raise no_workspace(ident)
        if role == "owner":
            _another_owner(conn, ident, me)
        shown = _found(conn, ident, me)
        conn.execute(delete(member).where(*here))
        people.close_keys(conn, visitor, me, within=ident)
        note(conn, ident, visitor.principal, "member.leave", visitor.principal, {"before": role})
        return shown

    with sight.visitor(ident, me):  # the person's own, whichever of theirs they are in
        return context.db.write(act)


def _mine(conn: Connection, visitor: Visitor, ident: str) -> str:
    """The workspace, where it is the asker's or the asker runs the server. Errors: unknown_workspace."""
    there = conn.execute(select(workspace.c.id).where(workspace.c.id == ident)).first() is not None
    if not there or (ident != visitor.workspace and not visitor.operator):
        raise no_workspace(ident)
    return ident


def _others(conn: Connection, visitor: Visitor, ident: str, leaving: str) -> None:
    """Refuses to leave a workspace without an owner, but to an operator, who can appoint one."""
    if not visitor.operator:
        _another_owner(conn, ident, leaving)


def _another_owner(conn: Connection, ident: str, leaving: str) -> None:
    """Errors: last_owner."""
    rest = select(func.count()).select_from(member).join(person, person.c.id == member.c.person)
    rest = rest.where(member.c.workspace == ident, member.c.role == "owner", member.c.person != leaving)
    if not conn.execute(rest.where(person.c.disabled.is_(None))).scalar_one():
        raise Conflict(
            "The workspace would have no owner.", code="last_owner", given=ident, hint="Make somebody else one first."
        )


def _found(conn: Connection, ident: str, who: str) -> wire.Member:
    wanted = select(member, person.c.name, person.c.disabled).join(person, person.c.id == member.c.person)
    return _member(conn.execute(wanted.where(member.c.workspace == ident, member.c.person == who)).one())


def _member(row: Row[Any]) -> wire.Member:
    return wire.Member(
        person=row.person, name=row.name, role=row.role, disabled=row.disabled is not None, since=row.created / 1e6
    )


def _one(conn: Connection, ident: str) -> wire.Workspace:
    row = conn.execute(select(workspace).where(workspace.c.id == ident)).one()
    held = select(func.count(), func.coalesce(func.sum(job.c.cost), 0))
    held = held.where(job.c.workspace == ident, job.c.state.in_(ledger.OPEN))
    jobs, cost = conn.execute(held).one()
    count = select(func.count()).select_from(member).where(member.c.workspace == ident)
    return wire.Workspace(
        id=row.id, name=row.name, created=row.created / 1e6, members=conn.execute(count).scalar_one(),
        most_jobs=row.most_jobs, most_cost=row.most_cost, weight=row.weight, jobs=int(jobs), cost=int(cost),
    )  # fmt: skip
