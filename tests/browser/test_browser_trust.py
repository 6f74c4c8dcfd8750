"""Somebody presses "Check further" and sees what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser_visitor import Visitor, photograph

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
PATIENCE = 240  # seconds for sixty maps of a real network on a busy machine


@pytest.fixture(scope="module")
def record(server: FanlightServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = Path(tmp_path_factory.mktemp("pictures")) / "cup.jpg"
    path.write_bytes(photograph())
    with Client(server.url, server.token) as fan:
        yield fan.explain(model="efficientnet-lite0", input=fan.upload(path).id, explainer="grad-cam").id


def test_checking_further_is_forecast_shown_while_it_runs_and_kept(visitor: Come, record: str) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record}")
        page.wait_for_selector("#ex-check")
        assert "about" in page.inner_text("#ex-check") and "Not measured yet" in page.inner_text("#ex-trust")
        page.click("#ex-check")
        page.wait_for_selector("#ex-trust .waiting [role=progressbar]", timeout=30_000)
        assert page.locator("#ex-check").count() == 0
        me.shot("trust-checking")
        page.wait_for_selector("#ex-trust .measure:has-text('Untrained network') .gauge", timeout=PATIENCE * 1000)
        me.until("!document.querySelector('#ex-trust .waiting')", seconds=PATIENCE)
        page.wait_for_selector("#ex-trust .measure:has-text('Faithfulness') .gauge", timeout=PATIENCE * 1000)
        said = page.inner_text("#ex-trust")
        for word in ("Faithfulness", "Stability", "Untrained network", "Agreement", "random 0.", "edges"):
            assert word in said, said
        gauges = page.locator("#ex-trust .gauge")
        assert gauges.count() == 6
        for i in range(gauges.count()):
            dot, line = gauges.nth(i).locator(".at").bounding_box(), gauges.nth(i).locator(".line").bounding_box()
            assert line["x"] - 8 <= dot["x"] <= line["x"] + line["width"] + 8
        assert me.sideways() <= 0 and me.faults() == []
        page.reload()
        page.wait_for_selector("#ex-trust .measure:has-text('Agreement') .gauge")
        assert page.locator("#ex-check").count() == 0, "it is not offered again"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_strip_is_legible_in_both_schemes_and_on_a_phone(visitor: Come, record: str, scheme: str) -> None:
    with visitor(scheme=scheme) as me:
        page = me.enter(f"/e/{record}")
        page.wait_for_selector("#ex-trust .measure:has-text('Agreement') .gauge")
        assert me.faults() == []
        page.locator("#ex-trust").scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        me.shot(f"trust-strip-{scheme}", full=True)
    if scheme == "light":
        with visitor(size=(390, 844)) as me:
            page = me.enter(f"/e/{record}")
            page.wait_for_selector("#ex-trust .measure:has-text('Agreement') .gauge")
            assert me.sideways() <= 0


def test_a_cancelled_check_is_offered_again(visitor: Come, server: FanlightServer) -> None:
    with Client(server.url, server.token) as fan:
        sample = fan.samples("photographs").items[1].input
        one = fan.explain(model="efficientnet-lite0", input=sample, explainer="occlusion").id
    with visitor() as me:
        page = me.enter(f"/e/{one}")
        page.click("#ex-check")
        page.wait_for_selector("#ex-trust .waiting >> text=Cancel")
        for _ in range(3):
            page.locator("#ex-trust .waiting button").first.click()
            page.wait_for_timeout(1500)
        page.wait_for_selector("#ex-check", timeout=60_000)


def test_a_share_shows_the_checks(visitor: Come, server: FanlightServer, record: str) -> None:
    with Client(server.url, server.token) as fan:
        fan.check(record, timeout=PATIENCE)
        token = fan.share([record]).token
    for scheme in ("light", "dark"):
        with visitor(link=True, scheme=scheme) as me:
            page = me.open(f"/s/{token}")
            assert page.locator("svg.gauge").count() == 4 and "Untrained network" in page.inner_text(".trust")
            assert me.sideways() <= 0 and me.faults() == []
            me.shot(f"trust-share-{scheme}", full=True)
