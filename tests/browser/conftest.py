"""A browser, and one real server per module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_visitor import Visitor

from fanlight.client import Client
from support.processes import FanlightServer


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """`fanlight serve`, empty, ready. Asks for Chromium first, so that nothing starts where there is none."""
    with FanlightServer(tmp_path_factory.mktemp("server")) as started:
        stocked(started)
        yield started


def stocked(server: FanlightServer) -> None:
    """Waits for the data set that the server registers while it already answers."""
    end = time.monotonic() + 60
    with Client(server.url, server.token) as client:
        while not client.datasets():
            assert time.monotonic() < end, "no data set was registered"
            time.sleep(0.1)


@pytest.fixture
def visitor(browser: Any, server: FanlightServer) -> Callable[..., Visitor]:
    """`with visitor() as somebody: ...`; `visitor(link=True)` is somebody without the token."""

    def come(*, link: bool = False, **options: Any) -> Visitor:
        return Visitor(browser, server.url, None if link else server.token, **options)

    return come
