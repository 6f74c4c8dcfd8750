"""A rule applied to a whole sweep: by keyboard, read in every size, and from a picture that moved to its concepts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor

import fanlight_models
from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
MODEL = "scbm-field-guide"
COUNT = 96
RULE = [{"set_concept": {"concept": "bill shape::hooked", "value": "yes"}}]


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """With the field guide and its concept bottleneck."""
    bundle = Path(fanlight_models.__file__).parent / "bundles" / MODEL
    started = FanlightServer(
        tmp_path_factory.mktemp("trials"), field_guide=True, trust="request", models=bundle, default_model=False
    )
    try:
        started.start()
        end = time.monotonic() + 120
        with Client(started.url, started.token) as client:
            while "field-guide" not in [d.id for d in client.datasets()]:
                assert time.monotonic() < end
                time.sleep(0.2)
        yield started
    finally:
        started.stop(patience=2)


@pytest.fixture(scope="module")
def swept(server: FanlightServer) -> str:
    """A finished sweep by concepts, and a rule that was tried on it before."""
    with Client(server.url, server.token) as client:
        found = client.start_sweep(MODEL, "scbm", "field-guide", first=COUNT, name="Birds by concepts")
        end = time.monotonic() + 200
        while found.state == "running":
            assert time.monotonic() < end, found
            time.sleep(0.2)
            found = client.sweep(found.id)
        assert found.counts["succeeded"] == COUNT
        made = client.start_trial(found.id, RULE)
        while made.state == "running":
            assert time.monotonic() < end, made
            time.sleep(0.1)
            made = client.trial(made.id)
        return str(found.id)


def choose(page: Any, id: str, words: str) -> None:
    page.locator(f"#{id}").click()
    page.locator(f"#{id}").fill(words) if page.locator(f"#{id}").get_attribute("readonly") is None else None
    page.get_by_role("option", name=words, exact=True).locator("visible=true").first.click()


def test_a_rule_is_made_of_two_answers_applied_and_followed_to_a_picture(visitor: Come, swept: str) -> None:
    with visitor() as me:
        me.enter()
        page = me.open(f"/sweeps/{swept}")
        page.wait_for_selector("text=Apply a rule to all of these")
        page.wait_for_selector(".trial-figures")
        choose(page, "tr-concept", "bill shape hooked")
        page.locator("#tr-add").press("Enter")
        page.wait_for_selector(".rule .chip")
        assert "bill shape hooked: yes" in page.locator(".rule").inner_text()
        choose(page, "tr-concept", "crest long")
        choose(page, "tr-value", "how probable")
        page.wait_for_selector("#tr-soft", state="visible")
        page.fill("#tr-soft", "0.3")
        page.keyboard.press("Tab")
        before = page.url
        page.locator("#tr-apply").press("Enter")
        me.until("() => /trial=\\w+/.test(location.search)")
        assert page.url != before
        me.until("() => document.querySelector('.trial-result h3')?.textContent.includes('crest long 0.3')")
        me.until("() => document.querySelector('.trial-result .tag')?.textContent === 'done'")
        assert f"{COUNT} of {COUNT} computed" in page.locator(".trial-result").inner_text()
        page.reload()
        me.until("() => document.querySelector('.trial-result h3')?.textContent.includes('crest long 0.3')")
        assert not me.faults()
        moved = page.locator(".moves a").first
        now = moved.locator("strong").inner_text()
        moved.press("Enter")
        page.wait_for_selector("#co-classes li")
        me.until("name => document.querySelector('#co-classes li .name')?.textContent === name", now)
        assert "answers=" in page.url


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("light", (1280, 800), "light"), ("dark", (1280, 800), "dark"), ("phone", PHONE, "light")],
)
def test_what_became_of_it_is_readable(visitor: Come, swept: str, name: str, size: Any, scheme: str) -> None:
    with visitor(size=size, scheme=scheme) as me:
        me.enter()
        page = me.open(f"/sweeps/{swept}")
        page.wait_for_selector(".trial-figures")
        for picture in page.locator(".moves img").all():  # they load when they are near
            picture.scroll_into_view_if_needed()
        me.until("() => [...document.querySelectorAll('.moves img')].every(i => i.complete && i.naturalWidth)")
        page.evaluate("scrollTo(0, 0)")
        assert me.sideways() <= 0
        me.shot(f"trial-{name}", full=True)
        assert not me.faults()
