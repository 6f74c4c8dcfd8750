"""What the services share, put together once by the application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row

from fanlight.blobs import Blobs
from fanlight.engine.base import Engine
from fanlight.errors import Forbidden
from fanlight.service.bus import Bus
from fanlight.settings import Settings
from fanlight.store.audit import note
from fanlight.store.database import Database

if TYPE_CHECKING:
    from fanlight.service.derivations import Derivations
    from fanlight.service.dispatch import Dispatcher
    from fanlight.service.examinations import Examinations
    from fanlight.service.foresight import Foresight
    from fanlight.service.live import Live
    from fanlight.service.models import Models
    from fanlight.service.shelf import Reading
    from fanlight.service.sweeps_run import Sweeper
    from fanlight.service.sweeps_summary import Summaries
    from fanlight.service.trials_run import Trier

WORKSPACE = "default"
SCOPES = ("read", "explain", "share", "admin")  # what a key may be allowed; admin includes the others
DECLARED = (*SCOPES, "self", "operate")
"""What an operation may ask for: `self` is everybody's, for what concerns only the asker; `operate` is for people and workspaces."""
ROLES = {"viewer": SCOPES[:1], "editor": SCOPES[:3], "owner": SCOPES}


@dataclass(frozen=True)
class Visitor:
    """Who asks: somebody with an account, a browser that knows the access token, or a program; and where."""

    principal: str
    workspace: str = WORKSPACE
    person: bool = False
    """Looks at pages, so that it is worth while to foresee what is asked next; a program is not."""
    scopes: frozenset[str] = frozenset(SCOPES)
    operator: bool = False
    """May do what concerns the whole server."""
    name: str = ""
    """Of an account."""
    ticket: str = ""
    """What it entered with, `session:HASH` or `key:ID`; empty for the access token."""

    def may(self, scope: str) -> bool:
        if scope in ("self", "operate"):
            return scope == "self" or self.operator
        return scope in self.scopes or "admin" in self.scopes

    def did(self, conn: Connection, action: str, subject: str, **detail: Any) -> None:
        """An entry of the audit log, in the transaction of the deed itself. What the server sets up by itself is nobody's deed."""
        if self.principal != SYSTEM.principal:
            note(conn, self.workspace, self.principal, action, subject, detail)

    def own(self, row: Row[Any], what: str) -> Row[Any]:
        """The row, where this visitor asked for it. Errors: not_yours."""
        if row.principal != self.principal:
            raise Forbidden(
                f"This {what} is somebody else's; only who asked for it can do that.", code="not_yours", given=row.id
            )
        return row


SYSTEM = Visitor("fanlight")


@dataclass
class Context:
    """Settings, database, blobs and engine, and what is built on them at the start of the application."""

    settings: Settings
    db: Database
    blobs: Blobs
    engine: Engine
    bus: Bus = field(default_factory=Bus)
    shelf: dict[str, Reading] = field(default_factory=dict)
    """Data sets that this server is still reading, by id."""
    models: Models = field(init=False)
    dispatcher: Dispatcher = field(init=False)
    live: Live = field(init=False)
    foresight: Foresight = field(init=False)
    examinations: Examinations = field(init=False)
    sweeper: Sweeper = field(init=False)
    summaries: Summaries = field(init=False)
    trier: Trier = field(init=False)
    derivations: Derivations = field(init=False)

    @property
    def explainers(self) -> tuple[str, ...]:
        return tuple(Settings.listed(self.settings.explainers))
