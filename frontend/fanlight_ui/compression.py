"""Compression of the pages' own files: each once, kept in memory, told to be cached for good. Nothing else passes through it, so
that streams are never held back.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

STATIC = ("/_dash-component-suites/", "/assets/")
TYPES = ("text/", "application/javascript", "application/json", "image/svg+xml")
MINIMUM = 1000  # bytes; below it the headers cost more than is won

Message = dict[str, Any]


class Compression:
    """ASGI middleware. Paths are those that Dash sees, without a prefix."""

    def __init__(self, app: Any):
        self.app = app
        self.kept: dict[tuple[str, bytes], bytes] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(STATIC):
            return await self.app(scope, receive, send)
        head: Message = {}
        body = bytearray()

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    await self.answer(scope, head, bytes(body), send)

        await self.app(scope, receive, collect)

    async def answer(self, scope: Any, head: Message, body: bytes, send: Any) -> None:
        headers = {k.lower(): v for k, v in head["headers"]}
        # Dash answers 500 for a file that is not registered: for a visitor it is not there.
        status = 404 if head["status"] >= 500 else head["status"]
        if status == 200:
            # A changed file has another address: its time of change stands in it.
            if scope["query_string"].startswith(b"m="):
                headers[b"cache-control"] = b"public, max-age=31536000, immutable"
            if len(body) >= MINIMUM and headers.get(b"content-type", b"").decode().startswith(TYPES):
                headers[b"vary"] = b"Accept-Encoding"
                if _accepts_gzip(scope):
                    body = await self.packed(scope, body)
                    headers[b"content-encoding"] = b"gzip"
            headers[b"content-length"] = str(len(body)).encode()
        elif status == 404:
            body, headers = b"not found", {b"content-type": b"text/plain; charset=utf-8", b"content-length": b"9"}
        await send({"type": "http.response.start", "status": status, "headers": list(headers.items())})
        await send({"type": "http.response.body", "body": body})

    async def packed(self, scope: Any, body: bytes) -> bytes:
        key = scope["path"], scope["query_string"]
        if key not in self.kept:
            self.kept[key] = await asyncio.to_thread(gzip.compress, body, 6)
        return self.kept[key]


def _accepts_gzip(scope: Any) -> bool:
    return any(k == b"accept-encoding" and b"gzip" in v for k, v in scope["headers"])
