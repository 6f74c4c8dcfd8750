"""The pages over a stand-in for the API, served on loopback below any prefix."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_api
import httpx
import uvicorn

OUT = Path(__file__).resolve().parents[2] / "test-output"


@dataclass
class Site:
    """A running server. `url` is that of the gallery, with its path prefix."""

    url: str
    store: fake_api.Store
    pages: Any


class Below:
    """Takes the prefix off, as a proxy does; what is outside of it is not found."""

    def __init__(self, app: Any, prefix: str):
        self.app, self.prefix = app, prefix

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            if not scope["path"].startswith(self.prefix + "/"):
                await send({"type": "http.response.start", "status": 404, "headers": []})
                return await send({"type": "http.response.body", "body": b""})
            path = scope["path"].removeprefix(self.prefix)
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self.app(scope, receive, send)


def build(store: fake_api.Store, prefix: str) -> tuple[Any, Any]:
    """The ASGI application and the Dash one in it."""
    from fanlight.client import AsyncClient
    from fanlight_ui.app import create_pages, csp
    from fanlight_ui.compression import Compression

    app = fake_api.create(store)
    pages = create_pages(app, client=AsyncClient(transport=httpx.ASGITransport(app)), prefix=prefix)

    @app.middleware("http")
    async def policy(request: Any, call_next: Callable[..., Any]) -> Any:
        answer = await call_next(request)
        answer.headers["Content-Security-Policy"] = csp(pages)
        return answer

    return Below(Compression(app), prefix) if prefix else Compression(app), pages


def serve(store: fake_api.Store, prefix: str = "") -> Iterator[Site]:
    app, pages = build(store, prefix)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started:
        if time.monotonic() > end:
            raise RuntimeError("the test server did not start")
        time.sleep(0.02)
    yield Site(f"http://127.0.0.1:{port}{prefix}/", store, pages)
    server.should_exit = True
    thread.join(10)
    listening.close()
