"""The pages over the small wire server: as a live server for a browser, and as callbacks for plain calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from wire_server import WireServer

from fanlight.client import AsyncClient
from fanlight_ui import session
from fanlight_ui.app import create_pages


@dataclass
class Live:
    url: str
    wire: WireServer


@pytest.fixture
def live() -> Iterator[Live]:
    """The pages on a free loopback port."""
    made = WireServer()
    create_pages(made.app, client=AsyncClient(transport=httpx.ASGITransport(made.app)))
    server = uvicorn.Server(uvicorn.Config(made.app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started and time.monotonic() < end:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Live(f"http://127.0.0.1:{port}", made)
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def wire_server() -> Iterator[WireServer]:
    """The pages' session connected to a wire server in process."""
    made = WireServer()
    before = session._Session.client, session._Session.prefix
    session.connect(AsyncClient(transport=httpx.ASGITransport(made.app)), "")
    yield made
    session._Session.client, session._Session.prefix = before
