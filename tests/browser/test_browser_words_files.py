"""The page of words with what stands beside the maps: files of it, how probable words are, and work that is given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from browser_visitor import Visitor

from fanlight.client import Client
from support.language import bert
from support.processes import FanlightServer
from support.prompts import explained

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
PROMPT = "a red circle left of a blue cross"


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """A server whose only models are those of the scenes, with a masked language model."""
    place = tmp_path_factory.mktemp("files")
    language = bert(place / "tiny-bert", sorted({*PROMPT.split()}))
    with FanlightServer(place, scenes=True, default_model=False, word_model=language) as started:
        yield started


@pytest.fixture(scope="module")
def record(server: FanlightServer) -> Any:
    return explained(server, PROMPT)


def test_files_are_asked_for_with_the_region_that_is_marked(visitor: Come, server: FanlightServer, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        links = page.locator("#ex-export a[href*='region=']")
        assert links.count() == 0
        page.click("#wd-mark")
        page.click(".wd-marking summary")
        for name, value in (("left", 1), ("right", 8), ("top", 1), ("bottom", 16)):
            page.fill(f"#wd-{name}", str(value))
        page.click("#wd-box")
        files = links.evaluate_all("all => all.map(a => a.href)")
        assert {f.partition("export.")[2].partition("?")[0] for f in files} == {"html", "pdf", "svg", "png", "json"}
        said = httpx.get(next(f for f in files if "export.svg" in f), headers=server.headers, trust_env=False).text
        assert "128 of 256 places was marked" in said and "nat inside" in said
        page.reload()
        page.wait_for_selector("#ex-export a[href*='region=']", state="attached")
        page.click("#wd-clear")
        assert links.count() == 0 and me.faults() == []


def test_words_are_weighed_by_how_probable_they_are(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        assert not page.is_visible("#wd-source")
        page.click("[data-rule=pointwise]")
        page.wait_for_selector("#wd-source")
        assert page.input_value("#wd-source") == "equal"

        page.select_option("#wd-source", "counts")
        page.fill("#wd-table", "red 30\nelephant, 50\ncircle\t10\nBlue;6\ncross 4\nleft 100\n")
        page.click("#wd-weigh")
        page.wait_for_selector("[data-wd=chances-said] >> text=a table of 5 words")
        assert "red 0.15, circle 0.050, left 0.50, blue 0.030, cross 0.020" in page.inner_text("[data-wd=chances-said]")
        page.wait_for_selector("[data-wd=facts] >> text=probabilities 0.15 and 0.050")
        larger = page.inner_text("#wd-map-redundant .num")
        assert larger == page.inner_text("#wd-map-a .num"), "the likelier word's map: redundant is what it says"
        kept = page.url
        page.reload()
        page.wait_for_selector("[data-wd=chances-said] >> text=a table of 5 words")
        assert page.url == kept

        page.select_option("#wd-source", "table")
        page.fill("#wd-table", "elephant 0.1")
        page.click("#wd-weigh")
        page.wait_for_selector("[data-wd=chances-said] >> text=None of the words of the prompt is in the table.")
        page.fill("#wd-table", "red 0.1")
        page.click("#wd-weigh")
        page.wait_for_selector("[data-wd=chances-said] >> text=The table has no “circle”.")
        assert all("422" in w for w in me.wrong)
        me.wrong.clear()

        page.wait_for_selector("#wd-source option[value=masked]:enabled", state="attached")
        page.select_option("#wd-source", "masked")
        page.click("#wd-weigh")
        page.wait_for_selector("[data-wd=chances-said] >> text=the masked language model tiny-bert")
        assert me.sideways() <= 0 and me.faults() == []
        me.shot("words-chances", full=True)
        page.select_option("#wd-source", "equal")
        me.until("!document.querySelector('[data-wd=chances-said]').textContent")
        page.click("#wd-undo")
        page.wait_for_selector("[data-wd=chances-said] >> text=tiny-bert")


def test_work_that_was_asked_for_on_the_page_is_given_up_there(visitor: Come, server: FanlightServer) -> None:
    """With the trained model of the scenes, which takes its time."""
    asked = {"kind": "prompt", "value": PROMPT}
    with Client(server.url, server.token) as fan:
        said = httpx.post(f"{server.url}/api/v1/inputs", json=asked, headers=server.headers, trust_env=False).json()
        params = {"nodes": "100", "steps": 4, "all_pairs": False}
        made = fan.explain(model="scenes-diffusion", input=said["id"], explainer="diffusion-pid", params=params)
    with visitor() as me:
        page = me.enter(f"/e/{made.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        kept = page.url
        page.click("[data-context=false]")
        page.click("[data-wd=drawing] button:has-text('Cancel')")
        page.wait_for_selector("#wd-said >> text=It was cancelled.")
        assert page.url == kept and page.locator("[data-wd=drawing] .waiting").count() == 0
        jobs = httpx.get(f"{server.url}/api/v1/jobs", headers=server.headers, trust_env=False).json()["items"]
        assert jobs[0]["state"] == "cancelled" and not [j for j in jobs if j["state"] in ("queued", "running")]
        page.click("[data-rule=pointwise]")  # the page goes on
        me.until("document.querySelector('[data-rule=pointwise]').getAttribute('aria-pressed') === 'true'")
        assert me.faults() == []
