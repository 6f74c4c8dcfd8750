"""A reverse proxy on loopback below a path prefix, as a program: passes requests on and streams answers as they come.

    python proxy.py PORT UPSTREAM PREFIX [--strip]

With `--strip` the prefix is taken off the path, as `proxy_pass http://upstream/;` does; without it the path goes on as it is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import httpx
import uvicorn

HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer", b"proxy-authorization"}


class Proxy:
    """ASGI application. Everything outside of the prefix is somebody else's and not found."""

    def __init__(self, upstream: str, prefix: str, strip: bool):
        self.prefix, self.strip = prefix, strip
        self.http = httpx.AsyncClient(base_url=upstream, timeout=None, trust_env=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["raw_path"].decode("ascii")
        if not path.startswith(self.prefix + "/"):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            return await send({"type": "http.response.body", "body": b"outside of the prefix"})
        if self.strip:
            path = path.removeprefix(self.prefix)
        query = scope["query_string"].decode("ascii")
        headers = [(k, v) for k, v in scope["headers"] if k not in HOP]  # Host among them
        url = path + ("?" + query if query else "")
        request = self.http.build_request(scope["method"], url, headers=headers, content=_body(receive))
        answer = await self.http.send(request, stream=True)
        try:
            kept = [(k, v) for k, v in answer.headers.raw if k.lower() not in HOP]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
            async for part in answer.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await answer.aclose()


async def _body(receive: Any) -> Any:
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


def command(port: int, upstream: str, prefix: str, *, strip: bool) -> list[str | Path]:
    """How to start it as a process of its own."""
    return [sys.executable, Path(__file__), str(port), upstream, prefix, *(["--strip"] if strip else [])]


if __name__ == "__main__":
    given = argparse.ArgumentParser()
    given.add_argument("port", type=int)
    given.add_argument("upstream")
    given.add_argument("prefix")
    given.add_argument("--strip", action="store_true")
    said = given.parse_args()
    uvicorn.run(
        Proxy(said.upstream, said.prefix, said.strip),
        host="127.0.0.1",
        port=said.port,
        log_level="warning",
        lifespan="off",
    )
