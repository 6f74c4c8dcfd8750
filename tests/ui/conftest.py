"""Sites to look at, and Chromium to look with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fake_api
import pytest
from ui_support import Site, serve

from support.browser import FLAGS


@pytest.fixture
def site() -> Iterator[Site]:
    yield from serve(fake_api.Store())


@pytest.fixture
def site_below_a_prefix() -> Iterator[Site]:
    yield from serve(fake_api.Store(), "/fanlight")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        shown = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield shown
        shown.close()
