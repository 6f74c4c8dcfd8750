"""The ledger of jobs: what was promised, who works on it, what came of it. Functions of a connection, composed into transactions by callers.

A job goes queued -> running -> succeeded | failed | cancelled | expired. A worker holds a job by a lease; a result is accepted only from the
attempt that holds it (fencing), so work may happen more than once but takes effect once. Attempts only count up; crashes count what the job
may be to blame for.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import structlog
from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from fanlight import meters
from fanlight.errors import Conflict, Forbidden, TooBusy, unknown
from fanlight.store import claims, quota
from fanlight.store.claims import LEASE as LEASE
from fanlight.store.database import now
from fanlight.store.news import announce
from fanlight.store.quota import OPEN as OPEN
from fanlight.store.tables import event, explanation, job, watcher

log = structlog.get_logger()
SECOND = 1_000_000
MAX_CRASHES = 3
_QUEUED = select(
    func.coalesce(func.sum(job.c.cost), 0),
    func.coalesce(func.sum(case((job.c.principal == bindparam("principal"), 1), else_=0)), 0),
).where(job.c.state.in_(OPEN), job.c.kind == bindparam("kind"), job.c.priority <= bindparam("priority"))
_QUEUED_BEHIND_THE_WALL = text("select waiting, mine from fanlight_queued(:principal, :kind, :priority)")
_HELD = update(job).where(
    job.c.id == bindparam("name"),
    job.c.attempt == bindparam("at"),
    job.c.owner == bindparam("by"),
    job.c.state.in_(OPEN),
)
LETTERS = string.ascii_letters + string.digits


def new_id() -> str:
    """A random id: 16 letters and digits, 95 bits. No sign, so that a shell takes none for an option and a double click selects it whole."""
    return "".join(secrets.choice(LETTERS) for _ in range(16))


def emit(conn: Connection, workspace: str, data: Mapping[str, Any]) -> None:
    """Appends an event that streams replay after a reconnect."""
    conn.execute(insert(event), {"workspace": workspace, "data": dict(data), "created": now(conn)})
    announce(conn, events=True)


def enqueue(
    conn: Connection, row: Mapping[str, Any], *, queue_limit: int, principal_limit: int, throughput: float
) -> str:
    """Adds a job and its first watcher; 429 where the queue, the person or the workspace is full. Returns its id.

    Args:
        row: workspace, principal, explanation, kind, work, priority, cost, deadline (microseconds from now, or None), and perhaps its id.
        queue_limit: most queued forward passes of jobs people wait for; what is less urgent than this job does not count.
        principal_limit: most unfinished jobs of one person, counted likewise.
        throughput: measured forward passes per second, for Retry-After.
    """
    asked = _QUEUED if conn.dialect.name == "sqlite" else _QUEUED_BEHIND_THE_WALL
    waiting, mine = conn.execute(asked, {name: row[name] for name in ("principal", "kind", "priority")}).one()
    if waiting + row["cost"] > queue_limit and waiting > 0:
        after = int(min(60, max(1, waiting / max(throughput, 1))))
        raise TooBusy(
            "The queue of this server is full.",
            retry_after=after,
            allowed=queue_limit,
            hint=f"Try again in {after} s.",
        )
    if mine >= principal_limit and row["kind"] == "explain":
        raise TooBusy(
            f"You have {mine} unfinished jobs.",
            retry_after=5,
            allowed=principal_limit,
            hint="Wait for some of them, or cancel them under Jobs.",
        )
    if row["kind"] == "explain":
        quota.keep(conn, row)
    t = now(conn)
    name = str(row.get("id") or new_id())
    values = {**row, "id": name, "deadline": None if row.get("deadline") is None else t + row["deadline"]}
    fresh = {
        "state": "queued",
        "attempt": 0,
        "crashes": 0,
        "progress": 0.0,
        "message": "",
        "cancel_requested": False,
        "created": t,
    }
    conn.execute(insert(job), {**fresh, **values})
    conn.execute(insert(watcher), {"job": name, "principal": row["principal"]})
    announce(conn, jobs=True)
    log.info("job queued", job=name, kind=row["kind"], explanation=row["explanation"])
    return name


def watch(conn: Connection, name: str, principal: str) -> None:
    """A further person waits for this job; it is cancelled only when all have left, and not if somebody comes back in time."""
    known = conn.execute(select(watcher.c.job).where(watcher.c.job == name, watcher.c.principal == principal)).first()
    if known is None:
        conn.execute(insert(watcher).values(job=name, principal=principal))
        conn.execute(update(job).where(job.c.id == name).values(cancel_requested=False))


def renew(conn: Connection, owner: str, held: Collection[str]) -> set[str]:
    """Renews the leases of `owner` on what it really works on; returns those to stop: taken over by others, or to be cancelled."""
    ours = and_(job.c.owner == owner, job.c.state.in_(OPEN), job.c.id.in_(held))
    conn.execute(update(job).where(ours).values(lease_until=now(conn) + LEASE))
    return set(held) - set(conn.execute(select(job.c.id).where(ours, job.c.cancel_requested.is_(False))).scalars())


def _held(name: str, attempt: int, owner: str) -> Any:
    return and_(job.c.id == name, job.c.attempt == attempt, job.c.owner == owner, job.c.state.in_(OPEN))


def progress(conn: Connection, name: str, attempt: int, owner: str, done: float, message: str) -> bool:
    """Notes progress; False where the attempt no longer holds the job."""
    t = now(conn)
    hit = conn.execute(
        update(job)
        .where(_held(name, attempt, owner))
        .values(state="running", progress=done, message=message[:200], started=func.coalesce(job.c.started, t))
    ).rowcount
    if hit:
        conn.execute(
            update(explanation)
            .where(explanation.c.job == name, explanation.c.state == "queued")
            .values(state="running")
        )
        announce(conn, progress=[name])
    return bool(hit)


def started(conn: Connection, owner: str, rows: Collection[Row[Any]]) -> None:
    """`owner` has begun these: what is to blame where it dies."""
    t = now(conn)
    ours = and_(job.c.id.in_([r.id for r in rows]), job.c.owner == owner, job.c.state == "queued")
    conn.execute(update(job).where(ours).values(state="running", started=func.coalesce(job.c.started, t)))
    shown = and_(explanation.c.id.in_([r.explanation for r in rows]), explanation.c.state == "queued")
    conn.execute(update(explanation).where(shown).values(state="running"))


def wanted(conn: Connection, name: str) -> bool:
    """Whether anybody still waits for the job."""
    return bool(conn.execute(select(job.c.id).where(job.c.id == name, job.c.cancel_requested.is_(False))).first())


def settle(
    conn: Connection, name: str, attempt: int, owner: str, state: str, error: Mapping[str, Any] | None = None
) -> bool:
    """Ends a job from the attempt that holds it. False where it does not (somebody else took over): the caller drops its result."""
    held = {"name": name, "at": attempt, "by": owner}
    over = {"state": state, "finished": now(conn), "error": error, "owner": None, "lease_until": None}
    over |= {"progress": 1.0} if state == "succeeded" else {}
    if state in ("cancelled", "expired"):
        claims.refund(conn, conn.execute(select(job).where(_held(name, attempt, owner))).all())
    hit = conn.execute(_HELD, {**held, **over}).rowcount
    return bool(hit)


def release(conn: Connection, name: str, attempt: int, owner: str, *, crashed: bool) -> bool:
    """Gives a job back to the queue; returns whether it did. A job that may be to blame for MAX_CRASHES crashes is to be settled instead."""
    row = conn.execute(select(job).where(_held(name, attempt, owner))).first()
    if row is None or (crashed and row.crashes + 1 >= MAX_CRASHES):
        return False
    claims.refund(conn, [row])
    conn.execute(
        update(job)
        .where(job.c.id == name)
        .values(state="queued", owner=None, lease_until=None, crashes=row.crashes + int(crashed))
    )
    announce(conn, jobs=True)
    return True


def reclaim(conn: Connection, *, held: Collection[str] = (), dead: bool = False) -> list[Row[Any]]:
    """Frees what dead workers held; returns the jobs that were worked on in MAX_CRASHES crashes, which are to be closed.

    Args:
        held: what the caller works on; it is alive, whatever the clock says of its leases.
        dead: every other worker is known to be dead, as at the start of the only server of a SQLite file; else those whose lease is over.
    """
    lost = and_(job.c.state.in_(OPEN), job.c.owner.is_not(None), job.c.id.not_in(held))
    if not dead:
        lost = and_(lost, job.c.lease_until < now(conn))
    rows = conn.execute(select(job).where(lost)).all()
    names = [r.id for r in rows]
    claims.refund(conn, rows)
    meters.lost_leases.inc(len(names))
    conn.execute(
        update(job)
        .where(job.c.id.in_(names))
        .values(
            state="queued",
            owner=None,
            lease_until=None,
            crashes=job.c.crashes + case((job.c.state == "running", 1), else_=0),
        )
    )
    if names:
        announce(conn, jobs=True)
    return list(conn.execute(select(job).where(job.c.id.in_(names), job.c.crashes >= MAX_CRASHES)))


def overdue(conn: Connection) -> list[Row[Any]]:
    """Open jobs that nobody works on although they should be over: past their deadline, or asked to cancel."""
    late = or_(job.c.deadline < now(conn), job.c.cancel_requested.is_(True))
    return list(conn.execute(select(job).where(job.c.state.in_(OPEN), job.c.owner.is_(None), late)))


def close(conn: Connection, names: Iterable[str], state: str, error: Mapping[str, Any] | None = None) -> None:
    """Ends jobs that nobody holds."""
    conn.execute(
        update(job)
        .where(job.c.id.in_(list(names)), job.c.state.in_(OPEN), job.c.owner.is_(None))
        .values(state=state, finished=now(conn), error=error, owner=None, lease_until=None)
    )


def cancel(conn: Connection, workspace: str, name: str, principal: str) -> bool:
    """`principal` leaves the job; returns whether nobody is left, so that it is to be stopped."""
    row = conn.execute(select(job).where(job.c.workspace == workspace, job.c.id == name)).first()
    if row is None:
        raise unknown("job", name, [])
    if row.state not in OPEN:
        raise Conflict(f"This job is over: {row.state}.", code="job_over", given=name)
    mine = conn.execute(select(watcher).where(watcher.c.job == name, watcher.c.principal == principal)).first()
    if mine is None and row.cancel_requested:
        raise Conflict("This job is already being cancelled.", code="job_over", given=name)
    if mine is None:
        raise Forbidden(
            "This job is somebody else's; only those who asked for it can cancel it.", code="not_yours", given=name
        )
    conn.execute(delete(watcher).where(watcher.c.job == name, watcher.c.principal == principal))
    left = conn.execute(select(func.count()).where(watcher.c.job == name)).scalar_one()
    if left == 0:
        conn.execute(update(job).where(job.c.id == name).values(cancel_requested=True))
        announce(conn, stop=[name])
    return bool(left == 0)


def place(conn: Connection, row: Row[Any]) -> int:
    """How many jobs of its workspace are before this one: what others wait for is theirs to know."""
    ahead = or_(job.c.priority < row.priority, and_(job.c.priority == row.priority, job.c.created < row.created))
    here = job.c.workspace == row.workspace, job.c.state.in_(OPEN), job.c.id != row.id
    return int(conn.execute(select(func.count()).where(*here, ahead)).scalar_one())
