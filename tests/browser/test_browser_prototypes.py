"""Somebody looks at what looks like what, takes some of it away, asks why not, and sends it to somebody else."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_visitor import PHONE, Visitor
from PIL import Image

from fanlight.client import Client
from support.processes import FanlightServer
from support.prototypes import CLASSES, small, write

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """A server whose only model is a small prototype classifier."""
    folder = tmp_path_factory.mktemp("prototypes")
    for n, pixels in small().pictures.items():
        place = folder / "pictures" / CLASSES[int(small().labels[n])]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{n}.png")
    model = str(write(folder / "small"))
    with FanlightServer(
        folder, models=model, default_model=False, datasets=f"training={folder / 'pictures'}"
    ) as started:
        yield started


@pytest.fixture(scope="module")
def record(server: FanlightServer, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = Path(tmp_path_factory.mktemp("pictures")) / "picture.png"
    out = io.BytesIO()
    Image.fromarray(np.asarray(small().pictures[3])).resize((128, 128), Image.Resampling.NEAREST).save(out, "PNG")
    path.write_bytes(out.getvalue())
    with Client(server.url, server.token) as fan:
        return fan.explain(model="small", input=fan.upload(path).id, explainer="protovit")


def number(text: str) -> float:
    return float(text.replace("\u2212", "-"))


def total(page: Any) -> float:
    return number(page.inner_text('[data-pt="total"]'))


def test_open_mute_leave_out_ask_why_not_undo_save_share_open_elsewhere(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}")
        page.click("a:has-text('This looks like that')")
        page.wait_for_selector(".pt-row")
        rows = page.locator('[data-pt="rows"] .pt-row')
        assert rows.count() == 6
        logit = next(p.logit for p in record.prediction if p.index == record.target["class"])
        assert total(page) == pytest.approx(logit, abs=0.005)
        points = [number(t) for t in page.locator('[data-pt="rows"] [data-pt="points"]').all_inner_texts()]
        assert sum(points) + number(page.inner_text('[data-pt="rest-points"]')) == pytest.approx(logit, abs=0.05)
        assert page.locator(".pt-row:first-child .pt-box:visible").count() in (6, 8)
        me.shot("prototypes", full=True)
        assert me.faults() == [] and me.sideways() <= 0

        # mute: the row fades, the bars move, and only its points are gone
        page.click(".pt-row:first-child [data-do=mute]")
        page.wait_for_selector(".pt-row.muted:first-child")
        assert total(page) == pytest.approx(logit - points[0], abs=0.015)
        assert "was" in page.inner_text('[data-pt="bars"]') and "One change" in page.inner_text('[data-pt="changed"]')

        # leave a part out: its prototype is scaled up where the part was weak, and that is said
        second = page.locator('[data-pt="rows"] .pt-row').nth(1)
        chips = second.locator(".pt-chip:enabled")
        weak = min(range(chips.count()), key=lambda i: number(chips.nth(i).locator("span").inner_text()))
        chips.nth(weak).click()
        page.wait_for_selector("text=Removing the weak part")
        assert chips.nth(weak).get_attribute("aria-pressed") == "false"

        # a reload loses nothing, and neither does the way back
        kept = page.url
        assert "edits=" in kept
        page.reload()
        page.wait_for_selector(".pt-row.muted")
        page.wait_for_selector("text=Removing the weak part")
        assert page.url == kept
        page.click("#pt-undo")
        page.wait_for_selector("text=Removing the weak part", state="detached")
        page.reload()
        page.wait_for_selector(".pt-row.muted")
        page.click("#pt-redo")
        page.wait_for_selector("text=Removing the weak part")
        assert page.url == kept and page.locator("#pt-redo").is_disabled()

        # why not another class?
        page.click("#pt-why")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("#pt-contrast:not([hidden]) .pt-row")
        assert "Why not" in page.inner_text('[data-pt="why-title"]') and "short of a perfect match" in page.inner_text(
            "#pt-contrast"
        )
        me.shot("prototypes-why-not", full=True)
        assert me.faults() == []

        # undo by button and by key, redo
        page.click("#pt-undo")
        page.wait_for_selector("#pt-contrast", state="hidden")
        page.keyboard.press("Control+Shift+Z")
        page.wait_for_selector("#pt-contrast:not([hidden]) .pt-row")
        changed = total(page)

        # save: a record of its own, opened, with the same numbers
        page.click("#pt-save")
        page.wait_for_url(lambda u: record.id not in u)
        page.wait_for_selector(".pt-row.muted")
        assert total(page) == changed and "edits=" not in page.url
        assert page.is_disabled("#pt-save")

        # share what is stored, after another change that is saved on the way
        page.locator('[data-pt="rows"] .pt-row').nth(2).locator("[data-do=mute]").click()
        page.wait_for_selector(".pt-row.muted:nth-child(3)")
        saved = page.url
        page.click("#ex-share")
        page.wait_for_url(lambda u: not saved.startswith(u.split("?")[0]))
        page.wait_for_selector("#ex-share-make")
        page.click("#ex-share-make")
        page.wait_for_selector("#ex-share-url")
        link = page.inner_text("#ex-share-url")
    with visitor(link=True) as you:
        you.page.goto(link)
        you.page.wait_for_selector("main")
        said = you.page.inner_text("main")
        assert "This looks like that" in said and "muted" in said and "points" in said
        assert you.page.locator(".map img").evaluate("img => img.naturalWidth") > 0
        you.shot("prototypes-shared", full=True)


def test_a_change_is_painted_at_once(visitor: Come, record: Any) -> None:
    """Forty toggles, as fast as they are painted. The bound is loose: machines that test are busy; `fanlight bench prototypes` measures."""
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/prototypes")
        page.wait_for_selector(".pt-row")
        took = page.evaluate("""async () => {
            const row = document.querySelector('[data-pt="rows"] .pt-row'), times = [];
            for (let i = 0; i < 40; i++) {
                const before = row.classList.contains("muted"), t = performance.now();
                row.querySelector('[data-do="mute"]').click();
                while (row.classList.contains("muted") === before) await new Promise((r) => requestAnimationFrame(r));
                times.push(performance.now() - t);
            }
            return times.sort((a, b) => a - b);
        }""")
        assert took[len(took) // 2] < 500, took


def test_parts_look_again_and_places_are_excluded(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/prototypes")
        page.wait_for_selector(".pt-row")
        first = page.locator('[data-pt="rows"] .pt-row').first
        first.locator("[data-do=parts]").click()
        first.locator(".pt-parts [data-do=remove]:enabled").first.click()
        page.wait_for_selector(".pt-chip:has-text('taken out')")
        first.locator(".pt-parts [data-do=spot]:enabled").first.click()
        page.wait_for_selector(".pt-shot .pt-shut")
        assert page.locator('[data-pt="excluded"] button').count() == 1
        page.click('[data-pt="excluded"] button')
        page.wait_for_selector(".pt-shut", state="detached")
        first.locator("[data-do=near]").click()
        page.wait_for_selector(".pt-near figure img")
        assert first.locator(".pt-near figure").count() == 3
        assert me.faults() == []


def test_what_is_muted_is_taken_out_for_good_and_the_original_stays(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/prototypes")
        page.wait_for_selector(".pt-row")
        assert page.locator("#pt-gone-go").is_disabled()
        page.click('[data-pt="rows"] .pt-row:nth-child(2) [data-do=mute]')
        page.wait_for_selector(".pt-row.muted")
        muted = page.locator(".pt-row.muted").get_attribute("data-prototype")
        me.until("j => document.querySelector('[data-pt=gone]').textContent === `Muted: ${j}.`", muted)
        page.click("#pt-gone-go")
        page.wait_for_selector("text=Choose a data set first.")
        page.click("#pt-gone-on")
        page.get_by_role("option", name="training").click()
        page.click("#pt-gone-go")
        page.wait_for_selector("#pt-gone-shown a", timeout=120_000)
        said = page.inner_text("#pt-gone-shown")
        assert f"without prototype {muted}" in said and "of 12 labelled pictures before" in said
        page.locator("#pt-gone-shown").scroll_into_view_if_needed()
        me.shot("prototypes-taken-out", full=True)
        assert me.faults() == [] and me.sideways() <= 0
        page.click("#pt-gone-shown a")
        page.wait_for_selector(f"text=Without prototype {muted}")
        me.shot("model-derived", full=True)
        me.open("/models/small")
        page.wait_for_selector("text=Made of it: 1")
        page.fill("#md-class", "yak")
        page.click("#md-data")
        page.get_by_role("option", name="training").click()
        page.click("#md-go")
        page.wait_for_selector("text=0 pictures labelled “yak”", timeout=120_000)
        me.shot("model-teach", full=True)
        assert me.faults() == [] and me.sideways() <= 0


def test_on_a_phone_in_the_dark_and_by_keyboard(visitor: Come, record: Any) -> None:
    with visitor(size=PHONE, scheme="dark") as me:
        page = me.enter(f"/e/{record.id}/prototypes")
        page.wait_for_selector(".pt-row")
        me.tab_to(".pt-row:first-child [data-do=mute]", most=80)
        page.keyboard.press("Enter")
        page.wait_for_selector(".pt-row.muted:first-child")
        page.keyboard.press("Control+z")
        page.wait_for_selector(".pt-row.muted", state="detached")
        assert me.sideways() <= 0 and me.faults() == []
        me.shot("prototypes-phone-dark")


def test_a_record_that_is_none_of_prototypes_says_so(visitor: Come, server: FanlightServer, record: Any) -> None:
    with Client(server.url, server.token) as fan:
        other = fan.explain(model="small", input=record.input, explainer="saliency")
    with visitor() as me:
        page = me.enter(f"/e/{other.id}/prototypes")
        page.wait_for_selector("text=none by prototypes")
        end = time.monotonic() + 5
        while not page.title() and time.monotonic() < end:
            time.sleep(0.1)
        me.wrong.clear()
