"""Shares and what the server says of itself on the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fanlight.wire.base import Id, Request, Wire


class ShareRequest(Request):
    explanations: Annotated[list[Id], Field(min_length=1, max_length=16)]
    view: dict[str, Any] = {}
    expires_in_days: Annotated[int, Field(ge=1, le=3650)] | None = None


class Share(Wire):
    """A link as its owner sees it. The token itself is shown once, when the share is made."""

    id: str
    explanations: list[str]
    title: str = ""
    created: float
    expires: float
    revoked: float | None = None
    views: int = 0
    principal: str = ""


class NewShare(Share):
    url: str
    token: str
    loopback_only: bool
    """True where nobody else can open the link: the server is bound to loopback and no public URL is set."""


class System(Wire):
    """What the pages need to know of the server."""

    version: str
    device: str
    ready: bool
    queued: int
    running: int
    explanations: int
    principal: str
    loopback: bool
    public_url: str | None = None
    numerics: str
    versions: dict[str, str] = {}
    settings: dict[str, Any] = {}
