"""Two lists of words against each other: asked for, watched, read cell by cell, on to a picture, and the table as a file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
TEMPLATE = "a {a} {b} left of a blue cross"


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """A server whose only models are those of the scenes."""
    with FanlightServer(tmp_path_factory.mktemp("studies"), scenes=True, default_model=False) as started:
        yield started


def number(text: str) -> float:
    return float(text.replace("\u2212", "-"))


def asked(page: Any, seeds: int) -> str:
    page.fill("#stn-template", TEMPLATE)
    page.fill("#stn-first", "red, green")
    page.fill("#stn-second", "circle\ncross")
    page.fill("#stn-seeds", str(seeds))
    page.wait_for_selector(f"#stn-forecast:has-text('{4 * seeds} pictures')")
    page.click("#stn-go")
    page.wait_for_url(re.compile(r"/sweeps/\w+$"))
    page.wait_for_selector("#sw-head .tag:has-text('done')", timeout=120_000)
    return str(page.url.split("/sweeps/")[1])


def test_a_study_is_asked_for_watched_read_and_taken_home(
    visitor: Come, server: FanlightServer, tmp_path: Path
) -> None:
    with visitor() as me:
        page = me.enter("/sweeps")
        page.click("text=New study of words")
        page.wait_for_selector("#stn-go")
        page.click("#stn-go")
        page.wait_for_selector("#stn-said .notice")  # no words yet
        assert me.faults() == []
        id = asked(page, seeds=3)
        page.wait_for_selector(".st-cell")
        me.until("document.querySelectorAll('.st-cell').length === 4")
        with Client(server.url, server.token) as fan:
            told = fan.study(id)
            redundant = fan.study(id, column="redundant")
        shown = page.locator(".st-value").all_inner_texts()
        wanted = [c.mean for row in told.cells for c in row]
        assert [number(t) for t in shown] == pytest.approx(wanted, rel=0.006)
        page.click("[data-st=column][data-value=redundant]")
        page.wait_for_selector("#st-table h2:has-text('Redundant')")
        assert [number(t) for t in page.locator(".st-value").all_inner_texts()] == pytest.approx(
            [c.mean for row in redundant.cells for c in row], rel=0.006
        )
        page.locator("[data-st=scale][data-value=normalised]").click()
        page.wait_for_selector("#st-table p:has-text('0 stands for')")
        page.locator("[data-value='1,0']").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#st-cell .card")
        assert page.locator("#st-cell .card").count() == 3
        assert page.evaluate("document.activeElement.dataset.value") == "1,0", "the keyboard stays on its cell"
        kept = page.url
        page.reload()
        page.wait_for_selector("#st-cell .card")
        assert page.url == kept and "cell=1%2C0" in kept and "column=redundant" in kept
        me.shot("study", full=True)
        assert me.sideways() <= 0 and me.faults() == []

        with page.expect_download() as file:
            page.click("text=Table (CSV)")
        file.value.save_as(tmp_path / "study.csv")
        rows = list(csv.DictReader((tmp_path / "study.csv").read_text().splitlines()))
        assert len(rows) == 12 and {r["first"] for r in rows} == {"red", "green"}

        page.locator("#st-cell .card h2 a").first.click()
        page.wait_for_url(re.compile("/e/"))
        page.wait_for_selector("main")
        assert "a green circle left of a blue cross" in page.inner_text("main")
        page.click("a:has-text('Which word put what where?')")
        page.wait_for_selector("#wd-maps canvas")
        page.click("text=Study these two against other words")
        page.wait_for_selector("#stn-template")
        assert page.input_value("#stn-template") == TEMPLATE and page.input_value("#stn-second") == "circle"


def test_on_a_phone_in_the_dark(visitor: Come) -> None:
    with visitor(size=PHONE, scheme="dark") as me:
        page = me.enter("/studies/new")
        page.wait_for_selector("#stn-go")
        assert me.sideways() <= 0 and me.faults() == []
        asked(page, seeds=1)
        page.wait_for_selector(".st-cell")
        page.locator("[data-value='0,1'].st-cell").click()
        page.wait_for_selector("#st-cell .card")
        assert me.sideways() <= 0 and me.faults() == []
        me.shot("study-phone-dark", full=True)


def test_words_that_cannot_be_asked_about_are_a_sentence_and_what_was_typed_stays(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter("/studies/new")
        page.fill("#stn-template", "a {a}ish {b}")
        page.fill("#stn-first", "red")
        page.fill("#stn-second", "cross")
        page.click("#stn-go")
        page.wait_for_selector("#stn-said >> text=only a part of another word")
        assert page.input_value("#stn-first") == "red"
