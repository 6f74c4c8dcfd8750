"""Around every request: an id that its log lines and its answer carry, how long it took by route template, one line when it is over."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fanlight import meters

log = structlog.get_logger()
GIVEN = re.compile(rb"[A-Za-z0-9._-]{8,64}")  # an id that a proxy made is kept
PREFIX = "/api/v1"
ENDLESS = PREFIX + "/events"
READS = ("GET", "HEAD", "OPTIONS")
METHODS = (*READS, "POST", "PUT", "PATCH", "DELETE")


class Watch:
    """ASGI middleware, outside the gate, so that refusals are seen as well. `Route` belongs inside everything."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        ident = _ident(scope)
        seen: dict[str, Any] = {"status": 500, "route": None}
        scope["fanlight.seen"] = seen

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                message = {**message, "headers": [*message.get("headers", []), (b"x-request-id", ident.encode())]}
            await send(message)

        begun = time.perf_counter()
        # Restored afterwards: a page asks the API inside its own request.
        with structlog.contextvars.bound_contextvars(request=ident):
            try:
                await self.app(scope, receive, watched)
            finally:
                _note(scope["method"], seen, time.perf_counter() - begun)


class Route:
    """ASGI middleware around the router: tells `Watch` which route answered."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        finally:
            seen = scope.get("fanlight.seen")
            if seen is not None:
                path: str | None = getattr(scope.get("route"), "path", None)
                # A route of an included router does not know the prefix under which it was included.
                if path is not None and scope["path"].startswith(PREFIX + "/") and not path.startswith("/api/"):
                    path = PREFIX + path
                seen["route"] = path


def _note(method: str, seen: dict[str, Any], seconds: float) -> None:
    method = method if method in METHODS else "other"
    status, route = int(seen["status"]), seen["route"] or "none"
    if route != ENDLESS:  # a stream lasts as long as somebody listens
        meters.requests.labels(method, route, f"{status // 100}xx").observe(seconds)
    if status == 429:
        meters.refused.inc()
    say = log.warning if status >= 500 and status != 503 else log.info if method not in READS else log.debug
    say("request", method=method, route=route, status=status, ms=round(seconds * 1000, 1))


def _ident(scope: Scope) -> str:
    given = next((v for k, v in scope["headers"] if k.lower() == b"x-request-id"), b"")
    return given.decode() if GIVEN.fullmatch(given) else secrets.token_hex(8)
