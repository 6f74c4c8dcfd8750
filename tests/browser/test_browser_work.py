"""Work that lasts: a refresh, a cancel, and two people at once on one server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser_visitor import Visitor, percent, photograph

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
VERY_LONG = 16384
LASTS = 10  # seconds


@pytest.fixture(scope="module")
def samples(server: FanlightServer) -> int:
    """As many as keep this machine busy for a while: its speed is known once it has done something."""
    with Client(server.url, server.token) as client:
        client.explain("efficientnet-lite0", client.samples("photographs").items[0].input, "occlusion")
        speed = client.system().settings["throughput"]
    return min(VERY_LONG, max(300, round(LASTS * speed)))


def ask_at_length(me: Visitor, samples: int, seed: int = 0) -> Any:
    """KernelSHAP with many samples, until its progress is on the screen."""
    page = me.page
    me.methods("KernelSHAP")
    page.click(".method summary >> text=KernelSHAP")
    page.get_by_role("textbox", name="Samples", exact=True).fill(str(samples))
    page.get_by_role("textbox", name="Seed").fill(str(seed))
    page.keyboard.press("Tab")
    me.until('n => decodeURIComponent(location.search).includes(`"samples":${n}`)', samples)
    page.click("#wb-go")
    page.wait_for_selector(".waiting .said:text-matches('[1-9]\\\\d* %')")
    return page


def test_a_job_is_still_there_after_a_refresh_and_finishes(visitor: Come, samples: int) -> None:
    with visitor() as me:
        me.enter("/explain")
        me.upload("cup.jpg", photograph())
        page = ask_at_length(me, samples)
        before = percent(page.inner_text(".waiting .said"))
        assert "left" in page.inner_text(".waiting .said")
        page.reload()
        page.wait_for_selector(".waiting .said:text-matches('\\\\d+ %')")
        assert percent(page.inner_text(".waiting .said")) >= before
        assert page.locator("[role=progressbar]").is_visible()
        page.wait_for_selector("#wb-picture")
        me.shot("workbench-running")
        page.click("a.nav >> text=Jobs")
        page.wait_for_selector(".job progress")
        page.wait_for_selector(".job >> text=KernelSHAP · cup.jpg")
        me.shot("jobs-running")
        page.go_back()
        me.painted()
        assert "KernelSHAP" in page.inner_text(".slot:visible .about")
        assert f"samples {samples}" in page.inner_text(".slot:visible .about")


def test_a_job_is_cancelled_and_says_so(visitor: Come) -> None:
    with visitor() as me:
        me.enter("/explain")
        me.upload("cup.jpg", photograph())
        page = ask_at_length(me, VERY_LONG)
        page.click(".waiting >> text=Cancel")
        page.wait_for_selector(".slot:visible >> text=It was cancelled before it finished")
        page.reload()
        page.wait_for_selector(".slot:visible >> text=It was cancelled before it finished")
        page.click("a.nav >> text=Jobs")
        page.wait_for_selector(".job.cancelled >> text=KernelSHAP")


def test_two_people_at_once_see_each_other_only_in_what_is_stored(visitor: Come) -> None:
    with visitor() as ann, visitor() as bob:
        hers, his = ann.enter("/explain"), bob.enter("/explain")
        ann.upload("anns-cat.jpg", photograph("chelsea.png"))
        bob.upload("bobs-rocket.jpg", photograph("rocket.jpg"))
        ann.methods("Saliency", "Grad-CAM")
        ann.explain(maps=2)
        ask_at_length(bob, VERY_LONG)

        slider = hers.get_by_role("slider")
        slider.focus()
        for _ in range(6):
            hers.keyboard.press("ArrowLeft")
        hers.locator("#wb-shared").click(force=True)
        ann.until("getComputedStyle(document.documentElement).getPropertyValue('--overlay').trim() === '0.5'")

        assert "anns-cat.jpg" in hers.inner_text("#wb-about") and "bobs-rocket.jpg" in his.inner_text("#wb-about")
        assert chosen(hers) == ["Saliency", "Grad-CAM"] and chosen(his) == ["KernelSHAP"]
        assert hers.locator(".waiting").count() == 0 and his.locator(".map").count() == 0
        assert not hers.locator("#wb-shared").is_checked() and his.locator("#wb-shared").is_checked()
        assert his.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--overlay').trim()") in (
            "",
            "0.8",
        )
        for page, other in ((hers, "bobs-rocket"), (his, "anns-cat")):
            assert other not in page.inner_text("body")

        hers.click("a.nav >> text=Jobs")
        hers.wait_for_selector("h2 >> text=Of others")
        theirs = hers.locator(".job", has_text="bobs-rocket")
        assert theirs.count() == 1 and theirs.get_by_role("button").count() == 0
        job = his.get_attribute(".waiting", "data-job")
        forbidden = "id => fetch(`/api/v1/jobs/${id}`, {method: 'DELETE'}).then(r => r.status)"
        assert hers.evaluate(forbidden, job) == 403
        assert [w for w in ann.wrong if "403" not in w] == []
        ann.wrong.clear()  # the refusal stands in the console
        assert his.locator(".waiting").is_visible(), "and it runs on"

        his.click(".waiting >> text=Cancel")
        his.wait_for_selector("text=It was cancelled before it finished")
        bob.methods("Saliency")
        bob.explain()
        for page in (hers, his):
            page.click("a.nav >> text=Gallery")
            page.wait_for_selector(".cards .card >> nth=2")
        assert hers.locator(".cards .card").count() == his.locator(".cards .card").count()
        hers.click(".filters >> text=Mine")
        hers.wait_for_selector(".chip >> text=Mine")
        ann.until("document.querySelectorAll('.cards .card').length === 2")


def chosen(page: Any) -> list[str]:
    return page.locator(".chips label[data-checked]").all_inner_texts()
