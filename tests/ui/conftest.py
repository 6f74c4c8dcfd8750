"""Sites to look at, and Chromium to look with."""

from __future__ import annotations

from collections.abc import Iterator

import fake_api
import pytest
from ui_support import Site, serve


@pytest.fixture
def site() -> Iterator[Site]:
    yield from serve(fake_api.Store())


@pytest.fixture
def site_below_a_prefix() -> Iterator[Site]:
    yield from serve(fake_api.Store(), "/fanlight")
