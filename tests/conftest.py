"""What tests of several areas share: real servers on loopback, a browser, photographs. What is absent skips."""

from __future__ import annotations

import os

os.environ.setdefault(
    "OMP_WAIT_POLICY", "PASSIVE"
)  # before torch is imported: threads that spin starve each other on shared cores
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import browser as support_browser, postgres
from support.processes import FanlightServer
from support.s3 import S3, Bucket

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Photographs that lie beside the checkout on some machines."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no sample photographs beside the checkout ({folder.name})")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    if postgres.binaries() is None:
        pytest.skip(postgres.MISSING)
    server = postgres.Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgres_url(postgres_server: postgres.Postgres) -> Iterator[str]:
    """URL of a fresh, empty database."""
    url = postgres_server.database()
    yield url
    postgres_server.drop(url)


@pytest.fixture
def walled_url(postgres_server: postgres.Postgres) -> Iterator[str]:
    """The same for an ordinary role, for whom row-level security holds."""
    url = postgres_server.walled()
    yield url
    postgres_server.drop(url)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    server = S3(tmp_path_factory.mktemp("s3"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3_bucket(s3_server: S3) -> Bucket:
    """A fresh bucket: `.url` (s3://...) and `.env` (credentials and address), for monkeypatch.setenv or a process."""
    return s3_server.bucket()


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[Callable[..., FanlightServer]]:
    """`running_server(examples=True, ...)` starts `fanlight serve` with these settings and returns it, ready."""
    servers: list[FanlightServer] = []

    def start(**options: object) -> FanlightServer:
        folder = tmp_path / f"server-{len(servers)}"
        folder.mkdir()
        servers.append(FanlightServer(folder, **options))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Chromium; start it with `support.browser.FLAGS`."""
    path = support_browser.chromium()
    if path is None:
        pytest.skip(support_browser.MISSING)
    return path


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """One Chromium for all tests that look at pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        shown = driver.chromium.launch(executable_path=chromium, args=list(support_browser.FLAGS))
        yield shown
        shown.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that drive a browser come last: its driver keeps an event loop running in this thread, beside which no other can run."""
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))
