"""The pages over the small wire server: as a live server for a browser, and as callbacks for plain calls."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from wb_support import Live, Pages
from wire_server import WireServer

from fanlight.client import AsyncClient
from fanlight_ui.app import create_pages


@pytest.fixture
def pages() -> Pages:
    made = WireServer()
    create_pages(made.app, client=AsyncClient(transport=httpx.ASGITransport(made.app)))
    return Pages(made, {})


def below(app: Any, prefix: str) -> Any:
    """`app` as behind a proxy that takes the prefix off; what is outside of it is not found."""

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            inside = scope["path"].startswith(prefix + "/")
            path = scope["path"].removeprefix(prefix) if inside else "/outside-of-the-prefix.png"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    return proxied if prefix else app


@pytest.fixture
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    """The pages on a loopback port; parametrised indirectly, below that path prefix."""
    prefix = getattr(request, "param", "")
    made, loops = WireServer(), []
    create_pages(made.app, client=AsyncClient(transport=httpx.ASGITransport(made.app)), prefix=prefix)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(below(made.app, prefix), log_level="warning", timeout_graceful_shutdown=1))

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started:
        if time.monotonic() > end:
            raise RuntimeError("the test server did not start")
        time.sleep(0.02)
    yield Live(f"http://127.0.0.1:{listening.getsockname()[1]}{prefix}", made, loops)
    server.should_exit = True
    thread.join(10)
    listening.close()
    assert not made.lacking, f"the small wire server lacks {sorted(set(made.lacking))}"
