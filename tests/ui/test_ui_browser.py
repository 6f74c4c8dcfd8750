"""Every page in Chromium: painted, quiet, reachable by keyboard, readable by machines, on a phone and in the dark."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import fake_api
import pytest
from axe_playwright_python.sync_playwright import Axe
from ui_support import OUT, Site, serve

pytestmark = pytest.mark.browser

PAGES = {
    "gallery": "",
    "table": "?view=table",
    "filtered": "?family=attribution&outcome=right&q=rocket",
    "nothing": "?q=zzz",
    "models": "models",
    "model": "models/efficientnet-lite0",
    "no-model": "models/nope",
    "data": "data",
    "jobs": "jobs",
    "shares": "shares",
    "settings": "settings",
    "nowhere": "nowhere/at/all",
}
SCREENS = {"light": (1600, 1075, "light"), "dark": (1600, 1075, "dark"), "phone": (390, 844, "light")}
WEIGHT = 800_000  # bytes on the wire of the first page, which leaves as much for its pictures


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    """For tests that change nothing."""
    yield from serve(fake_api.Store())


class Tab:
    """A page with what went wrong in it, and what it asked other hosts for."""

    def __init__(self, browser: Any, site: Site, screen: str = "light", toured: bool = True):
        width, height, scheme = SCREENS[screen]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.site, self.page = site, self.context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))
        if toured:
            self.page.add_init_script("localStorage.setItem('fanlight-tour', 'done')")

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open(self, path: str = "") -> Any:
        self.page.goto(self.site.url + path)
        self.page.wait_for_selector("main", timeout=20_000)
        return self.page

    def strangers(self) -> list[str]:
        own = re.match(r"https?://[^/]+", self.site.url)
        assert own
        return [u for u in self.asked if not u.startswith((own[0], "data:", "blob:"))]


@pytest.mark.parametrize("screen", [pytest.param(s, marks=pytest.mark.slow if s == "dark" else ()) for s in SCREENS])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_painted_without_faults(browser: Any, shared_site: Site, name: str, screen: str) -> None:
    with Tab(browser, shared_site, screen) as tab:
        page = tab.open(PAGES[name])
        page.wait_for_selector(".ag-cell" if name == "table" else "h1, .notice")
        page.wait_for_timeout(300)
        OUT.mkdir(exist_ok=True)
        page.screenshot(path=OUT / f"{name}-{screen}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "scrolls sideways"
        faults = [v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
        assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in faults] == []
        assert tab.wrong == [] and tab.strangers() == []


@pytest.mark.parametrize("name", ["gallery", "model", "jobs", "settings"])
def test_a_page_at_twice_the_size_does_not_scroll_sideways(browser: Any, shared_site: Site, name: str) -> None:
    with Tab(browser, shared_site) as tab:
        tab.page.set_viewport_size({"width": 640, "height": 480})  # 1280 x 960 at 200 %
        page = tab.open(PAGES[name])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_first_page_is_light_and_brings_no_plot(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        net = tab.context.new_cdp_session(tab.page)
        net.send("Network.enable")
        weights: list[float] = []
        net.on("Network.loadingFinished", lambda e: weights.append(e["encodedDataLength"]))
        tab.open("models")  # without pictures, whose weight is the API's
        tab.page.wait_for_timeout(500)
        assert 100_000 < sum(weights) <= WEIGHT
        assert not [u for u in tab.asked if "plotly" in u or "ag_grid" in u]


def test_a_filter_is_a_link_and_back_goes_back(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open()
        page.click(".filters >> text=Saliency")
        page.wait_for_selector(".chip >> text=Saliency")
        assert "explainer=saliency" in page.url
        assert "of 130" in page.inner_text(".head")
        page.go_back()
        page.wait_for_selector(".chip", state="detached")
        page.go_forward()
        page.click(".chip >> text=Saliency")
        page.wait_for_selector(".chip", state="detached")
        assert tab.wrong == []


def test_more_goes_on_and_a_reload_stays(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open()
        first = page.get_attribute("[data-item]", "data-item")
        page.click(".pager >> text=More")
        page.wait_for_selector("text=First page")
        second = page.get_attribute("[data-item]", "data-item")
        page.reload()
        page.wait_for_selector("[data-item]")
        assert page.get_attribute("[data-item]", "data-item") == second != first


def test_the_table_loads_as_one_scrolls_and_opens_a_record(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("?view=table")
        page.wait_for_selector(".ag-cell >> text=tabby")
        view = page.locator(".ag-body-viewport, .ag-grid-viewport").first
        for _ in range(30):
            view.hover()
            page.mouse.wheel(0, 900)
            page.wait_for_timeout(80)
        page.wait_for_selector("[row-index='129'] .ag-cell >> text=/./")
        href = page.get_attribute("[row-index='129'] a", "href")
        page.click("[row-index='129'] a")
        page.wait_for_url("**" + str(href))
        assert tab.strangers() == []


def test_a_filter_changes_the_rows_of_the_table(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("?view=table")
        page.wait_for_selector(".ag-cell >> text=tabby")
        page.click(".filters >> text=shortcut")
        page.wait_for_selector(".chip >> text=shortcut")
        page.wait_for_selector("[row-index='0'] .ag-cell >> text=missile")
        page.wait_for_selector("[row-index='18'] .ag-cell", state="attached")
        assert page.locator("[row-index='19']").count() == 0
        page.go_back()
        page.wait_for_selector("[row-index='0'] .ag-cell >> text=tabby")
        assert tab.wrong == []


def test_order_is_chosen_in_a_menu_by_keyboard(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open()
        page.focus(".menu summary")
        page.keyboard.press("Enter")
        page.wait_for_selector(".menu >> text=oldest first")
        page.keyboard.press("Escape")
        page.wait_for_selector(".menu >> text=oldest first", state="hidden")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**sort=oldest**")
        page.wait_for_selector(".pill >> text=oldest first")


def test_slash_searches_and_j_walks_the_cards(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open()
        page.keyboard.press("/")
        page.keyboard.type("rocket")
        page.keyboard.press("Enter")
        page.wait_for_selector(".chip >> text=rocket")
        page.wait_for_selector(".cards")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("j")
        second = page.locator("[data-item]").nth(1)
        assert second.evaluate("e => e.contains(document.activeElement)")
        id = second.get_attribute("data-item")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/e/{id}")


def test_the_skip_link_leads_past_the_header(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("jobs")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_the_current_page_is_marked_and_announced(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("models")
        page.wait_for_selector("a.nav[aria-current=page] >> text=Models")
        page.click("a.nav >> text=Jobs")
        page.wait_for_selector("a.nav[aria-current=page] >> text=Jobs")
        page.wait_for_selector("#live >> text=Jobs", state="attached")


def test_light_and_dark_are_remembered(browser: Any, shared_site: Site) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with Tab(browser, shared_site) as tab:
        page = tab.open("settings")
        assert page.evaluate(ground) == "rgb(251, 251, 249)"
        page.click("#scheme")
        assert page.evaluate(ground) == "rgb(20, 22, 26)"
        page.reload()
        page.wait_for_selector("[data-scheme=dark][aria-pressed=true]")
        assert page.evaluate(ground) == "rgb(20, 22, 26)"
        page.click("[data-scheme=auto]")
        assert page.evaluate(ground) == "rgb(251, 251, 249)"


def test_the_tour_shows_once_and_can_be_brought_back(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site, toured=False) as tab:
        page = tab.open("settings")
        page.wait_for_selector("#tour >> text=Ask why")
        page.screenshot(path=OUT / "tour-light.png")
        page.click("#tour-next")
        page.wait_for_selector("#tour >> text=See how far to trust it")
        page.click("#tour-dismiss")
        page.reload()
        page.wait_for_selector("#tour-reset")
        page.wait_for_timeout(400)
        assert not page.is_visible("#tour")
        page.click("#tour-reset")
        assert page.is_visible("#tour >> text=Ask why")


def test_a_job_moves_with_the_events_of_the_stream(browser: Any, site: Site) -> None:
    with Tab(browser, site) as tab:
        with tab.page.expect_response("**/api/v1/events"):
            page = tab.open("jobs")
        page.wait_for_selector("#running >> text=2 running")
        page.wait_for_selector(".job progress")
        event = {"type": "job", "id": "j1", "explanation": "e0003", "kind": "explain"}
        for progress in (0.5, 0.77):
            step = {"state": "running", "progress": progress, "message": f"window {progress:.0%}", "seconds_left": 5.0}
            site.store.jobs["j1"] = site.store.jobs["j1"].model_copy(update=step)
            site.store.emit(**event, **step, place=None)
            page.wait_for_selector(f"text=/window {progress:.0%} · {progress * 100:.0f} % · about 5/")
        done = {"state": "succeeded", "progress": 1.0, "finished": time.time()}
        site.store.jobs["j1"] = site.store.jobs["j1"].model_copy(update=done)
        site.store.emit(**event, **done, message="", place=None, seconds_left=None)
        page.wait_for_selector(".job.succeeded >> text=Occlusion of coffee.png")
        page.wait_for_selector("#running >> text=1 running")
        assert tab.wrong == []


def test_a_card_follows_what_happens_to_its_explanation(browser: Any, site: Site) -> None:
    made = site.store.explanations["e0001"]
    site.store.explanations["e0001"] = made.model_copy(update={"state": "running"})
    with Tab(browser, site) as tab:
        with tab.page.expect_response("**/api/v1/events"):
            page = tab.open()
        page.wait_for_selector("[data-item=e0001] >> text=being computed")
        site.store.explanations["e0001"] = made
        site.store.emit(type="job", id="j9", explanation="e0001", kind="explain", state="succeeded", progress=1.0)
        page.wait_for_selector("[data-item=e0001] >> text=faithfulness +0.45")
        page.wait_for_selector("[data-item=e0001] img")


def test_without_a_stream_the_jobs_are_asked_for(browser: Any, site: Site) -> None:
    site.store.streaming = False
    with Tab(browser, site) as tab:
        page = tab.open("jobs")
        site.store.jobs["j1"] = site.store.jobs["j1"].model_copy(update={"progress": 0.9, "message": "nearly"})
        page.wait_for_selector("text=/nearly · 90 %/", timeout=20_000)


def test_a_job_of_mine_is_cancelled(browser: Any, site: Site) -> None:
    with Tab(browser, site) as tab:
        page = tab.open("jobs")
        page.click("text=Cancel Kernel SHAP")
        page.wait_for_selector(".job.cancelled >> text=Kernel SHAP of rocket.jpg")
        assert site.store.jobs["j2"].state == "cancelled"


def test_a_refusal_is_said_and_nothing_breaks(browser: Any, site: Site) -> None:
    with Tab(browser, site) as tab:
        page = tab.open("jobs")
        site.store.jobs["j2"] = site.store.jobs["j2"].model_copy(update={"mine": False})
        page.click("text=Cancel Kernel SHAP")
        page.wait_for_selector("text=This job is somebody else's.")
        page.wait_for_selector("text=2 before it in the queue")
        page.screenshot(path=OUT / "refusal-light.png")


def test_a_share_is_revoked_after_a_question(browser: Any, site: Site) -> None:
    with Tab(browser, site) as tab:
        page = tab.open("shares")
        page.click("text=Revoke Why “space suit”?")
        page.wait_for_selector("text=was opened 12 times")
        page.wait_for_timeout(300)
        page.screenshot(path=OUT / "revoke-light.png")
        page.click("#revoke-no")
        page.wait_for_selector("text=was opened 12 times", state="hidden")
        assert site.store.shares["s1"].revoked is None
        page.click("text=Revoke Why “space suit”?")
        page.click("text=Revoke the link")
        page.wait_for_selector(".tag.live", state="detached")
        assert site.store.shares["s1"].revoked is not None


def test_an_empty_gallery_computes_an_example_in_one_click(browser: Any, site: Site) -> None:
    site.store.explanations.clear()
    with Tab(browser, site) as tab:
        page = tab.open()
        page.wait_for_selector("text=Explain something of mine")
        page.wait_for_timeout(300)
        page.screenshot(path=OUT / "empty-light.png")
        page.click("text=Why “tabby”?")
        page.wait_for_url("**/e/e0000")
        assert list(site.store.explanations) == ["e0000"]


def test_a_model_card_runs_no_script_and_classes_can_be_searched(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("models/efficientnet-lite0")
        page.wait_for_selector(".prose table")
        page.click(".prose >> text=a link")
        assert page.evaluate("window.hacked") is None
        page.fill("#class-q", "espresso")
        page.wait_for_selector(".classes li:only-child >> text=espresso")


def test_samples_are_searched_and_lead_to_the_workbench(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("data")
        page.fill("#sample-q", "tabby")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=10 found")
        assert "q=tabby" in page.url
        assert page.locator(".thumb").count() == 10
        assert "/explain?input=chelsea" in str(page.get_attribute(".thumb", "href"))


@pytest.mark.parametrize("name", ["gallery", "table", "jobs", "model"])
def test_everything_works_below_a_prefix(browser: Any, site_below_a_prefix: Site, name: str) -> None:
    with Tab(browser, site_below_a_prefix) as tab:
        page = tab.open(PAGES[name])
        page.wait_for_selector("#running >> text=2 running")
        page.wait_for_timeout(300)
        page.click("a.nav >> text=Shares")
        page.wait_for_selector("h1 >> text=Shares")
        assert page.url == site_below_a_prefix.url + "shares"
        outside = [u for u in tab.asked if not u.startswith((site_below_a_prefix.url, "data:"))]
        assert outside == [] and tab.wrong == []


def test_a_model_is_examined_from_its_page(browser: Any, shared_site: Site) -> None:
    with Tab(browser, shared_site) as tab:
        page = tab.open("models/efficientnet-lite0")
        page.click("text=Examine this model")
        page.wait_for_selector(".examination progress")
        page.wait_for_selector(".examination >> text=It can be explained.")
    for screen in SCREENS:
        with Tab(browser, shared_site, screen) as tab:
            page = tab.open("models/efficientnet-lite0")
            page.wait_for_selector(".examination table >> text=Saliency")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert [
                v["id"] for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")
            ] == []
            assert tab.wrong == []
            page.screenshot(path=OUT / f"examination-{screen}.png", full_page=True)
