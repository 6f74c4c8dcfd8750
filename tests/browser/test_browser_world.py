"""What is known of the field guide: readable in every size, and from its data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    with FanlightServer(
        tmp_path_factory.mktemp("world"), field_guide=True, trust="request", default_model=False
    ) as started:
        end = time.monotonic() + 120
        with Client(started.url, started.token) as client:
            while "field-guide" not in [d.id for d in client.datasets()]:
                assert time.monotonic() < end
                time.sleep(0.2)
        yield started


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("light", (1280, 800), "light"), ("dark", (1280, 800), "dark"), ("phone", PHONE, "light")],
)
def test_what_is_known_is_readable(visitor: Come, name: str, size: Any, scheme: str) -> None:
    with visitor(size=size, scheme=scheme) as me:
        me.enter()
        page = me.open("/data?dataset=field-guide")
        page.click("text=what is known of it")
        page.wait_for_selector(".pairs img")
        for picture in page.locator(".pairs img").all():  # they load when they are near
            picture.scroll_into_view_if_needed()
        me.until("() => [...document.querySelectorAll('.pairs img')].every(i => i.complete && i.naturalWidth)")
        page.evaluate("scrollTo(0, 0)")
        assert "24 in 6 families" in page.inner_text("main") and "79 in 19 groups" in page.inner_text("main")
        assert me.sideways() <= 0
        me.shot(f"world-{name}", full=True)
        assert not me.faults()
