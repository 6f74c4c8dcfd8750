"""One server for all attacks that it must get over; it is looked at again after each module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from attacks_rig import SETTINGS, Target, model

from fanlight.bench.fuzz import UNFORESEEN
from support.processes import FanlightServer


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder: Path = tmp_path_factory.mktemp("attacked")
    server = FanlightServer(folder, **SETTINGS, models=model(folder))
    server.start()
    http = httpx.Client(base_url=server.url, headers=server.headers, timeout=60, trust_env=False)
    try:
        yield Target(server, http).stocked()
    finally:
        http.close()
        server.stop(patience=15)


@pytest.fixture(scope="module")
def target(attacked: Target) -> Iterator[Target]:
    """The server; whatever a module sent, it is the same process afterwards, works, and nothing went wrong in it that nobody foresaw."""
    before = attacked.server.pid
    said = attacked.server.log.stat().st_size
    yield attacked
    assert attacked.server.pid == before
    attacked.lives()
    with attacked.server.log.open("rb") as log:
        log.seek(said)
        told = log.read().decode()
    assert [words for words in UNFORESEEN if words in told] == [], attacked.server.output()


@pytest.fixture
def stranger(attacked: Target) -> Iterator[httpx.Client]:
    """Somebody who does not know the token."""
    with attacked.browser() as http:
        yield http
