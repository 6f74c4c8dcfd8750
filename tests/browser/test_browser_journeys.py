"""What a newcomer does, from the first page to a link that is dead again; in a real browser against a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from browser_visitor import Visitor, percent, photograph

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]


def test_from_the_first_page_to_a_link_that_is_dead_again(visitor: Come) -> None:
    with visitor(toured=False) as me:
        page = me.enter()
        assert "token" not in page.url, "the token stays out of the address bar"
        page.wait_for_selector("#tour >> text=Ask why")
        me.shot("tour")
        page.click("#tour-dismiss")
        page.wait_for_selector("#tour", state="hidden")

        page.click("a.nav >> text=Explain")
        page.wait_for_selector("#wb-go")
        assert page.locator("#wb-go").is_disabled(), "there is no picture yet"
        me.upload("my-cup.jpg", photograph())
        assert "my-cup.jpg · 320 × 213 px" in page.inner_text("#wb-about").replace("\u00a0", " ")
        me.methods("Grad-CAM")
        me.explain()
        assert_painted(me)
        about = page.inner_text(".slot:visible .about")
        assert "Grad-CAM" in about and "computed in" in about
        bars = page.locator("#wb-prediction .bars li")
        assert bars.count() == 5
        name, probability = bars.first.locator(".name").inner_text(), percent(bars.first.inner_text())
        assert page.inner_text("#wb-title") == f"Why “{name}”?"
        assert 0 < probability < 100
        page.wait_for_selector(
            ".slot:visible .trust:text-matches('(faithfulness|not above chance,) [+−]?\\\\d')", timeout=120_000
        )

        page.click("a.nav >> text=Gallery")
        page.fill("#search", "my-cup")
        page.press("#search", "Enter")
        page.wait_for_selector(".chip >> text=“my-cup”")
        page.wait_for_selector(".cards .card")
        assert page.locator(".cards .card").count() == 1
        assert name in page.inner_text(".cards .card") and "Grad-CAM" in page.inner_text(".cards .card")
        page.click(".cards .card")
        page.wait_for_selector("#ex-body .over")
        me.painted(1, "#ex-body")
        assert page.inner_text("#ex-title") == f"Why “{name}”?"

        page.click("#ex-share")
        page.click("#ex-share-make")
        page.wait_for_selector("#ex-share-url")
        page.click("[data-copy=ex-share-url]")
        page.wait_for_selector("text=Copied")
        link = page.evaluate("navigator.clipboard.readText()")
        assert link == page.inner_text("#ex-share-url") and "/s/" in link
        me.shot("share-dialog")
        page.keyboard.press("Escape")

        with visitor(link=True) as stranger:
            answer = stranger.page.goto(link)
            assert answer.status == 200
            assert "noindex" in answer.headers["x-robots-tag"]
            assert stranger.context.cookies() == []
            text = stranger.page.inner_text("body")
            assert f"Why “{name}”?" in text and f"{probability:.1f} %" in text.replace("\u202f", " ")
            assert "faithfulness" in text and "Grad-CAM" in text
            stranger.page.locator(
                "img"
            ).last.scroll_into_view_if_needed()  # the curves are loaded when one comes to them
            stranger.page.wait_for_timeout(500)
            assert stranger.page.locator("img").evaluate_all("all => all.every(i => i.complete && i.naturalWidth)")
            assert stranger.pixels("img").std() > 15
            refused = stranger.context.request.get(f"{stranger.url}/api/v1/explanations")
            assert refused.status == 401, "a link opens itself and nothing else"

        page.click("a.nav >> text=Shares")
        page.click(f"text=Revoke Why “{name}”?")
        page.wait_for_selector("text=was opened 1 time")
        me.shot("revoke")
        page.click("#revoke-yes")
        page.wait_for_selector(".tag.revoked")

        with visitor(link=True) as late:
            assert late.page.goto(link).status == 404
            assert name not in late.page.inner_text("body")
            late.shot("share-dead")
            assert [w for w in late.wrong if "404" not in w] == []
            late.wrong.clear()  # that the page itself is a 404 stands in the console


def assert_painted(me: Visitor) -> None:
    """The map is over the picture, on a scale with its ends and unit."""
    page = me.page
    with_map = me.pixels(".slot:visible .map")
    page.evaluate("document.documentElement.style.setProperty('--overlay', 0)")
    without = me.pixels(".slot:visible .map")
    page.evaluate("document.documentElement.style.removeProperty('--overlay')")
    assert without.std() > 20, "the picture itself is not there"
    assert np.abs(with_map - without).mean() > 5, "the map is not over the picture"
    low, unit, high = (page.inner_text(f".slot:visible .scale .{part}") for part in ("lo", "unit", "hi"))
    assert any(c.isdigit() for c in low) and any(c.isdigit() for c in high) and unit


def test_by_keyboard_from_the_first_page_to_a_link(visitor: Come) -> None:
    with visitor(toured=False) as me:
        page = me.enter()
        keys = page.keyboard
        me.tab_to("#tour-dismiss")
        keys.press("Enter")
        page.wait_for_selector("#tour", state="hidden")
        page.reload()
        page.wait_for_selector("main")
        me.tab_to("a.nav[href$='/explain']")
        keys.press("Enter")
        page.wait_for_selector("#wb-go")
        me.tab_to(".sample")
        keys.press("Enter")
        page.wait_for_selector("#wb-go:enabled")
        page.wait_for_selector("#wb-picture")
        me.tab_to(".chips input")
        me.tab_to("#wb-go")
        keys.press("Enter")
        me.painted()
        me.tab_to(".slot h3 a")
        keys.press("Enter")
        page.wait_for_selector("#ex-body .over")
        me.tab_to("#ex-share")
        keys.press("Enter")
        page.wait_for_selector("#ex-share-make")
        me.tab_to("#ex-share-make", 8)
        keys.press("Enter")
        page.wait_for_selector("#ex-share-url")
        me.tab_to("[data-copy=ex-share-url]", 8)
        keys.press("Enter")
        page.wait_for_selector("text=Copied")
        keys.press("Escape")
        page.wait_for_selector("#ex-share-make", state="hidden")
        assert page.evaluate("document.activeElement.id") == "ex-share", "focus comes back to where it was"


def test_what_is_hidden_changes_the_answer_beside_the_one_before(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter("/explain")
        me.upload("cat.jpg", photograph("chelsea.png"))
        me.methods("Saliency")
        me.explain()
        page.click(".slot h3 a")
        page.wait_for_selector("#ex-body .over")
        first, before = page.url, percent(page.inner_text("#ex-body .bars .explained"))
        page.click("#ex-change")
        page.wait_for_selector("#ex-hide")
        box = page.locator(".sketch").bounding_box()
        page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
        page.mouse.up()
        assert me.page.input_value("#ex-hide-right") != ""
        me.shot("change")
        page.click("#ex-hide")
        page.wait_for_url(lambda url: "/e/" in url and url != first)
        page.wait_for_selector("text=Outline: before the change.")
        me.painted(1, "#ex-body")
        me.shot("changed")
        assert page.locator(".subject-part .hidden-region").count() == 1
        row = page.locator("#ex-body .bars .explained")
        assert percent(row.locator(".was").inner_text()) == before != percent(row.inner_text())
        page.click("text=Open the original")
        page.wait_for_url(first)


def test_kernel_shap_shows_another_class_at_once(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter("/explain")
        page.click(".sample[aria-label*=Chelsea]")
        page.wait_for_selector("#wb-go:enabled")
        me.methods("KernelSHAP")
        set_samples(me, 128)
        me.explain()
        page.click(".slot h3 a")
        page.wait_for_selector("#ex-live-class")
        page.fill("#ex-live-class", "lynx")
        page.click("[role=option]:visible >> text=/^lynx$/")
        me.painted(1, "#ex-live-panel")
        assert "lynx" in page.inner_text("#ex-live-panel p")
        first = me.pixels("#ex-live-panel .map")
        page.fill("#ex-live-class", "Persian cat")
        page.click("[role=option]:visible >> text=Persian cat")
        page.wait_for_selector("#ex-live-panel p >> text=Persian cat")
        me.painted(1, "#ex-live-panel")
        assert np.abs(me.pixels("#ex-live-panel .map") - first).mean() > 1
        assert page.inner_text("#ex-live-panel .scale .unit")
        me.shot("live", full=True)


def set_samples(me: Visitor, samples: int) -> Any:
    me.page.click(".method summary >> text=KernelSHAP")
    me.page.get_by_role("textbox", name="Samples", exact=True).fill(str(samples))
    me.page.keyboard.press("Tab")
    me.until('n => decodeURIComponent(location.search).includes(`"samples":${n}`)', samples)
