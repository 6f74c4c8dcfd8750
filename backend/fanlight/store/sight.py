"""What a transaction may see and change: one workspace, everything, or, where nobody has said it, nothing.

The queries of a request name its workspace themselves; this is the second wall behind them, for the query that forgets to. On PostgreSQL the policies
of migration 0011 compare every row with settings of the transaction, which `Database` makes from what is kept here; SQLite has no such thing.
The gate says whose request it is; what works for the whole server says so where it begins, and `server()` cannot be had inside a visitor's request.
docs/decisions/0015.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from sqlalchemy import Connection, text

from fanlight.errors import Forbidden


@dataclass(frozen=True)
class Sight:
    """Args: workspace: empty for none; person: id of an account, whose memberships are seen wherever they are; server: everything."""

    workspace: str = ""
    person: str = ""
    server: bool = False


NOTHING, SERVER = Sight(), Sight(server=True)
_current: ContextVar[Sight | None] = ContextVar("fanlight_sight", default=None)
_SEE = text(
    "select set_config('fanlight.workspace', :workspace, true), set_config('fanlight.person', :person, true),"
    " set_config('fanlight.server', :server, true)"
)


def current() -> Sight | None:
    """None where nobody has said anything."""
    return _current.get()


def visitor(workspace: str, person: str = "") -> contextlib.AbstractContextManager[None]:
    """For the gate, around a request: what it does is about this workspace. Empty: it is about none, as at a public address."""
    return _set(Sight(workspace, person))


def door() -> contextlib.AbstractContextManager[None]:
    """For the gate alone, while it finds out who somebody is: keys, sessions and memberships are of all workspaces."""
    return _set(SERVER)


def server() -> contextlib.AbstractContextManager[None]:
    """For what is the whole server's: the worker, retention, registration, a share that is opened. Refused inside a visitor's request."""
    now = _current.get()
    if now is not None and now.workspace and not now.server:
        raise RuntimeError(f"a request in the workspace {now.workspace} cannot come to see the whole server")
    return _set(SERVER)


def upkeep() -> contextlib.AbstractContextManager[None]:
    """For three things that are of all workspaces although requests set them off, and that take nothing from those: bringing the gallery's list up
    to date, counting for `/metrics`, and how much work is before a job that waits."""
    return _set(SERVER)


def operator(allowed: bool) -> contextlib.AbstractContextManager[None]:
    """For what operators do to people and workspaces, from inside their request. Args: allowed: whether the visitor is one. Errors: scope."""
    if not allowed:
        raise Forbidden("This is for those who run the server.", code="scope")
    return _set(SERVER)


@contextlib.contextmanager
def _set(sight: Sight) -> Iterator[None]:
    mark = _current.set(sight)
    try:
        yield
    finally:
        _current.reset(mark)


def see(conn: Connection, sight: Sight) -> None:
    """For the rest of this transaction, and no longer."""
    if conn.dialect.name == "postgresql":
        told = {"workspace": sight.workspace, "person": sight.person, "server": "on" if sight.server else ""}
        conn.execute(_SEE, told)
