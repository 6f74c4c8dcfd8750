"""Whether a running installation is well: database, revision, clock, queue, artifact store, disk, and the server's own word."""

from __future__ import annotations

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from sqlalchemy import Connection, func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from fanlight.artifact import digest
from fanlight.blobs import Blobs
from fanlight.doctor import Check, Report
from fanlight.doctor.installation import disk
from fanlight.errors import FanlightError
from fanlight.settings import Settings
from fanlight.store import migrate
from fanlight.store.database import Database, now
from fanlight.store.ledger import LEASE, OPEN, SECOND
from fanlight.store.sight import SERVER
from fanlight.store.tables import job

DRIFT = 5.0  # seconds between two clocks that confuse who reads logs; leases follow the database's alone
STUCK = 600.0  # seconds for which work that people wait for may be queued
KINDS = {"explain": "explanations", "trust": "trust records", "check": "checks"}


def examine(settings: Settings) -> Report:
    """Looks from beside the server, with its settings; changes nothing, and leaves no blob behind."""
    checks = [_safely("database", lambda: database(settings))]
    if checks[0].outcome == "good":
        checks.append(_safely("revision", lambda: revision(settings)))
        db = Database(settings.database, sees=SERVER)
        try:
            checks.append(_safely("clock", lambda: db.read(clock)))
            checks.append(_safely("walls", lambda: db.read(walls)))
            if checks[1].outcome == "good":
                checks += [_safely("queue", lambda: db.read(queue)), _safely("leases", lambda: db.read(leases))]
        finally:
            db.close()
    checks += [_safely("artifacts", lambda: artifacts(settings)), disk(settings), server(settings)]
    return Report("service", checks)


def database(settings: Settings) -> Check:
    shown = make_url(settings.database).render_as_string(hide_password=True)
    found = migrate.current(settings.database)
    if found is None:
        return Check(
            "database", "bad", f"{shown} holds no tables of Fanlight.", "Start the server once; it makes them."
        )
    return Check("database", "good", f"{shown} answers.")


def revision(settings: Settings) -> Check:
    found, newest = migrate.current(settings.database), migrate.revisions()[-1]
    if found == newest:
        return Check("revision", "good", f"The tables are of revision {found}, the newest.")
    if found in migrate.revisions():
        says = f"The tables are of revision {found}; this version works with {newest}."
        return Check("revision", "bad", says, "Back up, then start this version: it migrates.")
    says = f"The tables are of revision {found}, which this version does not know."
    return Check("revision", "bad", says, "A newer version migrated them: use that one, or restore a backup of before.")


def clock(conn: Connection) -> Check:
    """The database's clock against this machine's; half of the way there and back is taken off."""
    begun = time.time()
    theirs = now(conn) / 1e6
    apart = theirs - (begun + time.time()) / 2
    if abs(apart) > DRIFT:
        says = f"The database's clock is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} this machine's."
        return Check(
            "clock", "warning", says, "Leases follow the database; set both by NTP so that times on pages agree."
        )
    return Check("clock", "good", f"The clocks of database and machine are {abs(apart):.1f} s apart.")


def queue(conn: Connection) -> Check:
    t = now(conn)
    wanted = select(job.c.kind, func.count().label("n"), func.sum(job.c.cost).label("cost"))
    waiting = list(conn.execute(wanted.where(job.c.state.in_(OPEN)).group_by(job.c.kind)))
    first = select(func.min(job.c.created)).where(job.c.state == "queued", job.c.kind == "explain", job.c.priority <= 1)
    oldest = conn.execute(first).scalar()
    if not waiting:
        return Check("queue", "good", "Nothing is waiting.")
    parts = ", ".join(f"{row.n} {KINDS.get(row.kind, row.kind)} ({row.cost} forward passes)" for row in waiting)
    if oldest is not None and t - oldest > STUCK * SECOND:
        says = f"Unfinished: {parts}. The oldest that somebody waits for is {(t - oldest) / SECOND / 60:.0f} min old."
        return Check("queue", "warning", says, "Is a server running on this database, and is its compute worker ready?")
    return Check("queue", "good", f"Unfinished: {parts}.")


def walls(conn: Connection) -> Check:
    """Whether the database itself keeps workspaces apart: only PostgreSQL does, and not for superusers."""
    if conn.dialect.name == "sqlite":
        return Check(
            "walls", "good", "SQLite has no row-level security; Fanlight's queries alone keep workspaces apart."
        )
    if conn.execute(text("select rolsuper or rolbypassrls from pg_roles where rolname = current_user")).scalar_one():
        says = "The database's role is a superuser, or has BYPASSRLS: row-level security does not hold for it."
        return Check("walls", "warning", says, "Let an ordinary role own the database: docs/operations.md.")
    return Check("walls", "good", "Row-level security keeps workspaces apart besides Fanlight's queries.")


def leases(conn: Connection) -> Check:
    """Work held by servers that have been silent for longer than a lease and the second in which others notice."""
    over = job.c.lease_until < now(conn) - LEASE
    lost = conn.execute(select(func.count()).where(job.c.state.in_(OPEN), job.c.owner.is_not(None), over)).scalar_one()
    if lost:
        says = f"{lost} jobs are held by a server that no longer renews its leases."
        return Check("leases", "warning", says, "A running server takes them over; start one.")
    return Check("leases", "good", "No job is held by a server that is gone.")


def artifacts(settings: Settings) -> Check:
    """Puts a blob that nobody has, reads it, compares, takes it away."""
    blobs, blob = Blobs(settings.artifacts), b"fanlight doctor " + secrets.token_bytes(16)
    begun = time.perf_counter()
    name = blobs.put(blob)
    try:
        same = digest(blobs.get(name)) == name
    finally:
        blobs.collect(name, float("inf"))
    ms = (time.perf_counter() - begun) * 1000
    if not same:
        return Check("artifacts", "bad", f"{settings.artifacts} gives back other bytes than were put.")
    return Check("artifacts", "good", f"{settings.artifacts}: put, read and compared in {ms:.0f} ms.")


def server(settings: Settings) -> Check:
    """What /readyz of the server says that has these settings."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    url = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}{settings.root_path}/readyz"
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with ask.open(url, timeout=10) as answer:
            status, body = answer.status, answer.read(65536)
    except urllib.error.HTTPError as e:
        status, body = e.code, e.read(65536)
    except OSError as e:
        why = getattr(e, "reason", e)
        return Check("server", "bad", f"No server answers at {url}: {why}", "FANLIGHT_HOST and FANLIGHT_PORT name it.")
    if status == 200:
        return Check("server", "good", f"{url} says that it is ready.")
    try:
        problems = {k: v for k, v in json.loads(body).items() if k != "ready"}
    except (ValueError, AttributeError):
        return Check("server", "bad", f"{url} answers {status}; is that Fanlight?")
    return Check("server", "bad", "Not ready: " + ", ".join(f"{k} {v}" for k, v in problems.items()) + ".")


def _safely(name: str, look: Callable[[], Check]) -> Check:
    """A part that does not answer is a finding, not the end."""
    try:
        return look()
    except FanlightError as e:
        return Check(name, "bad", e.message, e.hint or "")
    except (SQLAlchemyError, OSError, ValueError, ImportError) as e:
        said = str(getattr(e, "orig", None) or e).strip().splitlines()
        return Check(name, "bad", f"{said[0] if said else type(e).__name__}")
