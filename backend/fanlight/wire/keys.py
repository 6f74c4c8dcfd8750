"""API keys and the audit log on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from fanlight.wire.base import Request, Wire

Scope = Literal["read", "explain", "share", "admin"]


class KeyRequest(Request):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    expires_in_days: Annotated[int, Field(ge=1, le=3650)] | None = None


class Key(Wire):
    """A key as whoever runs the server sees it. The key itself is shown once, when it is made."""

    id: str
    name: str
    scopes: list[Scope]
    principal: str
    created: float
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None
    """The last time, to the minute."""


class NewKey(Key):
    key: str


class AuditEntry(Wire):
    id: int
    time: float
    workspace: str
    """Empty for what concerns the whole server: people and workspaces."""
    principal: str
    who: str = ""
    """The name of a person or a key, while there is one."""
    action: str
    subject: str
    detail: dict[str, Any] = {}
