"""What the shell and the pages ask a server for whoever runs it: API keys, and the log of who did what."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from fanlight import wire
from fanlight.client import Call


def keys() -> Call[list[wire.Key]]:
    return Call("GET", "/keys", lambda r: TypeAdapter(list[wire.Key]).validate_json(r.content))


def create_key(name: str, scopes: Sequence[str], days: int | None = None) -> Call[wire.NewKey]:
    body = {"name": name, "scopes": list(scopes), **({} if days is None else {"expires_in_days": days})}
    return Call("POST", "/keys", lambda r: wire.NewKey.model_validate_json(r.content), json=body)


def revoke_key(ident: str) -> Call[wire.Key]:
    return Call("DELETE", f"/keys/{ident}", lambda r: wire.Key.model_validate_json(r.content))


def audit(
    *, action: str = "", subject: str = "", cursor: str | None = None, limit: int = 50
) -> Call[wire.Page[wire.AuditEntry]]:
    given = {"action": action or None, "subject": subject or None, "cursor": cursor, "limit": limit}
    params = {k: v for k, v in given.items() if v is not None}
    return Call("GET", "/audit", lambda r: wire.Page[wire.AuditEntry].model_validate_json(r.content), params=params)
