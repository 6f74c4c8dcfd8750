"""Choose two explanations in the gallery by keyboard, compare them, read them together, and get a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]


@pytest.fixture(scope="module")
def made(server: FanlightServer) -> list[str]:
    with Client(server.url, server.token) as client:
        photo = client.samples("photographs").items[0].input
        ids = [client.explain("efficientnet-lite0", photo, "input-x-gradient", target=t).id for t in (None, 5)]
        return [*ids, client.explain("efficientnet-lite0", photo, "saliency").id]


def test_two_are_chosen_by_keyboard_and_compared(visitor: Come, made: list[str]) -> None:
    with visitor() as me:
        page = me.enter()
        page.wait_for_selector(".cards .item")
        for id in made[:2]:
            page.locator(f'[data-item="{id}"] h2 a').focus()
            page.keyboard.press("c")
        assert "2 chosen" in page.inner_text("#compare-tray output")
        me.shot("gallery-chosen")
        page.locator("#compare-tray a").press("Enter")
        page.wait_for_selector(".compare .map")
        assert "/compare?ids=" in page.url and all(id in page.url for id in made[:2])
        maps = page.locator(".compare .map")
        assert maps.count() == 3  # the two, and their difference
        maps.first.focus()
        page.keyboard.press("ArrowRight")
        me.until("() => document.querySelectorAll('.compare .map.read').length === 3")
        a, b, difference = (float(t.replace("\u2212", "-")) for t in page.locator(".map .pixel").all_inner_texts())
        assert difference == pytest.approx(a - b, abs=0.02 * max(abs(a), abs(b), abs(difference)))
        page.get_by_role("slider", name="Opacity of the maps").press("ArrowLeft")
        me.until("() => new URLSearchParams(location.search).get('opacity') === '75'")
        page.reload()
        page.wait_for_selector(".compare .map")
        assert page.get_by_role("slider", name="Opacity of the maps").get_attribute("aria-valuenow") == "75"
        me.painted(3, ".compare")
        me.shot("compare", full=True)
        assert not me.faults()


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("dark", (1280, 800), "dark"), ("phone", PHONE, "light"), ("zoom", (640, 400), "light")],
)
def test_three_of_two_units_are_readable(visitor: Come, made: list[str], name: str, size: Any, scheme: str) -> None:
    """640 x 400 is what a window of 1280 x 800 has at 200 %."""
    with visitor(size=size, scheme=scheme) as me:
        me.enter()
        page = me.open(f"/compare?ids={','.join(made)}")
        page.wait_for_selector(".agreement")
        assert page.locator(".compare .map").count() == 3
        assert "normalised" in page.inner_text("main")
        assert me.sideways() <= 0
        me.painted(3, ".compare")
        me.shot(f"compare-{name}", full=True)
        assert not me.faults()


def test_an_explanation_leads_to_others_of_its_picture_and_to_its_files(visitor: Come, made: list[str]) -> None:
    with visitor() as me:
        me.enter()
        page = me.open(f"/e/{made[0]}")
        page.click("#ex-export summary")
        for label, start in (("Figure (SVG)", b"<svg"), ("Report to print (PDF)", b"%PDF")):
            url = page.get_by_role("link", name=label).get_attribute("href")
            assert page.request.get(me.url + url).body().startswith(start)
        page.keyboard.press("Escape")
        page.click("text=Beside …")
        page.click(".candidates a >> nth=0")
        page.wait_for_selector(".agreement")
