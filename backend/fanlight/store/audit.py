"""The audit log: who did what to which record, and when. Written in the transaction of the deed itself, so that there is no one without the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert

from fanlight.store.database import now
from fanlight.store.tables import audit


def note(
    conn: Connection, workspace: str, principal: str, action: str, subject: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Args: action: "share.create", "key.revoke", ...; subject: the id of the record; detail: never a secret."""
    row = {"workspace": workspace, "principal": principal, "action": action, "subject": subject[:128]}
    # Inline: who writes to the server's own log may not read there, not even the number of the entry.
    conn.execute(insert(audit).inline(), {**row, "detail": dict(detail or {}), "created": now(conn)})
