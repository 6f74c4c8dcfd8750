"""A sweep from the page of its data set to its groups by keyboard; saved views; the way from one explanation to the next."""

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
COUNT = 40
MEASURED = 4


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """With the field guide and its network; trust is measured where it is asked for, because it takes seconds a map."""
    with FanlightServer(tmp_path_factory.mktemp("sweeps"), field_guide=True, trust="request") as started:
        end = time.monotonic() + 120
        with Client(started.url, started.token) as client:
            while "field-guide" not in [d.id for d in client.datasets()]:
                assert time.monotonic() < end
                time.sleep(0.2)
        yield started


@pytest.fixture(scope="module")
def swept(server: FanlightServer) -> str:
    """A finished sweep."""
    with Client(server.url, server.token) as client:
        model = next(m.id for m in client.models() if m.id.startswith("field-guide"))
        found = client.start_sweep(model, "grad-cam", "field-guide", first=COUNT, name="Where it looks")
        end = time.monotonic() + 200
        while found.state == "running":
            assert time.monotonic() < end, found
            time.sleep(0.2)
            found = client.sweep(found.id)
        assert found.counts["succeeded"] == COUNT
        some = [i.explanation for i in client.sweep_items(found.id, limit=MEASURED).items]
        for one in some:
            client.measure_trust(one)
        while any(client.trust(one).state in ("pending", "running") for one in some):
            assert time.monotonic() < end
            time.sleep(0.2)
        return str(found.id)


def test_a_sweep_is_asked_for_watched_paused_and_cancelled_by_keyboard(visitor: Come, swept: str) -> None:
    with visitor() as me:
        page = me.enter("/data")
        page.click("text=Field guide")
        page.wait_for_selector("text=192 pictures")
        page.locator("text=Explain all of it: a sweep").press("Enter")
        page.wait_for_selector("#swn-go")
        me.until("() => document.querySelector('#swn-dataset')?.value.includes('ield')")
        page.locator("#swn-model").click()
        page.get_by_role("option", name="Field guide").first.click()
        me.until("() => document.querySelector('#swn-forecast').textContent.includes('pictures')")
        me.shot("sweep-form", full=True)
        assert not me.faults()
        page.locator("#swn-go").press("Enter")
        page.wait_for_selector("#sw-progress progress")
        me.until("() => document.querySelector('#sw-progress').textContent.includes('a second')")
        me.shot("sweep-running", full=True)
        assert not me.faults()
        page.locator("#sw-turn").press("Enter")
        me.until("() => document.querySelector('#sw-turn')?.textContent === 'Resume'")
        page.locator("#sw-turn").press("Enter")
        me.until("() => document.querySelector('#sw-turn')?.textContent === 'Pause'")
        page.locator("#sw-cancel").press("Enter")
        me.until("() => document.querySelector('#sw-head').textContent.includes('cancelled')")
        page.goto(f"{me.url}/sweeps")
        page.wait_for_selector("text=Where it looks")
        assert page.locator(".job").count() >= 2
        me.shot("sweeps", full=True)
        assert not me.faults()


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("light", (1280, 800), "light"),
        ("dark", (1280, 800), "dark"),
        ("phone", PHONE, "light"),
        ("zoom", (640, 400), "light"),
    ],
)
def test_what_it_found_is_readable(visitor: Come, swept: str, name: str, size: Any, scheme: str) -> None:
    """640 x 400 is what a window of 1280 x 800 has at 200 %."""
    with visitor(size=size, scheme=scheme) as me:
        me.enter()
        page = me.open(f"/sweeps/{swept}")
        page.wait_for_selector(".groups article")
        page.wait_for_selector(".plot .points path", state="attached")
        me.until("() => [...document.querySelectorAll('.means img')].every(i => i.complete && i.naturalWidth)")
        assert me.sideways() <= 0
        page.evaluate("document.querySelector('.of-sweep:last-of-type').scrollIntoView()")
        page.evaluate("scrollTo(0, 0)")
        me.shot(f"sweep-done-{name}", full=True)
        assert not me.faults()


def test_a_point_and_a_row_open_their_explanation_and_one_walks_on_from_a_group(visitor: Come, swept: str) -> None:
    with visitor() as me:
        me.enter()
        page = me.open(f"/sweeps/{swept}")
        page.wait_for_selector(".plot .points path")
        page.locator(".plot .points path").first.scroll_into_view_if_needed()
        box = page.locator(".plot .points path").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector("#ex-title")
        assert "/e/" in page.url
        me.open(f"/sweeps/{swept}")
        page.wait_for_selector(".groups article")
        page.locator("summary:has-text('The same as a table')").press("Enter")
        assert page.locator(".scroll tbody tr").count() >= COUNT
        page.locator(".members a").first.press("Enter")
        page.wait_for_selector("#ex-next:visible")
        first = page.url
        page.keyboard.press("j")
        me.until("u => location.href !== u", first)
        page.wait_for_selector("#ex-previous:visible")


def test_a_view_is_saved_opened_renamed_deleted_and_brought_back(visitor: Come, swept: str) -> None:
    with visitor() as me:
        me.enter()
        page = me.open(f"/?sweep={swept}&sort=faithfulness")
        page.locator("#gv-name").press_sequentially("Best of <b>birds</b>", delay=30)
        page.keyboard.press("Enter")
        page.wait_for_selector(".views li >> text=Best of <b>birds</b>")
        me.open("/")
        page.click(".views li a >> text=Best of <b>birds</b>")
        me.until("() => new URLSearchParams(location.search).get('sort') === 'faithfulness'")
        page.wait_for_selector(".views li.chosen")
        me.shot("views", full=False)
        assert not me.faults()
        page.locator(".views .menu summary").press("Enter")
        page.locator(".views button:has-text('Rename')").press("Enter")
        page.fill("#gv-new-name", "")
        page.locator("#gv-new-name").press_sequentially("Best birds", delay=30)
        page.keyboard.press("Enter")
        page.wait_for_selector(".views li >> text=Best birds")
        page.locator(".views .menu summary").press("Enter")
        page.locator(".views button:has-text('Delete')").press("Enter")
        page.wait_for_selector("text=Deleted “Best birds”.")
        assert page.locator(".views li").count() == 0
        page.locator(".views button:has-text('Undo')").press("Enter")
        page.wait_for_selector(".views li >> text=Best birds")


def test_one_walks_beyond_the_page_of_the_gallery_in_its_order(
    visitor: Come, server: FanlightServer, swept: str
) -> None:
    with Client(server.url, server.token) as client:
        page1 = client.explanations(sweep=swept, sort="probability", limit=36)
        order = [e.id for e in page1.items]
        order += [
            e.id for e in client.explanations(sweep=swept, sort="probability", limit=36, cursor=page1.next_cursor).items
        ]
    with visitor() as me:
        me.enter()
        page = me.open(f"/?sweep={swept}&sort=probability")
        page.locator(f'[data-item="{order[34]}"] h2 a').press("Enter")
        page.wait_for_selector("#ex-next:visible")
        next_is = "id => { const n = document.querySelector('#ex-next'); return !n?.hidden && n?.getAttribute('href')?.endsWith(id); }"
        for expected in order[35:38]:
            me.until(next_is, expected)
            page.keyboard.press("j")
            me.until("id => location.pathname.endsWith(id)", expected)
        me.until("id => document.querySelector('#ex-previous')?.getAttribute('href')?.endsWith(id)", order[36])
        page.keyboard.press("k")
        me.until("id => location.pathname.endsWith(id)", order[36])
