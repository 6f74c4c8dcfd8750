"""The two pages in Chromium: from a picture to its maps, through refresh, keyboard, phone and dark; pictures go to test-output/."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from wb_support import Live
from wire_methods import SIDE, waves

from fanlight import wire

pytestmark = pytest.mark.browser
OUT = Path(__file__).resolve().parents[2] / "test-output"


@pytest.fixture
def page(browser: Any, live: Live) -> Iterator[Any]:
    yield from opened(browser, live, width=1334, height=896)


@pytest.fixture
def phone(browser: Any, live: Live) -> Iterator[Any]:
    yield from opened(browser, live, width=390, height=844)


def opened(browser: Any, live: Live, *, width: int, height: int, scheme: str = "light") -> Iterator[Any]:
    """A page of its own context. A request to another host, an uncaught error or a server error fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", base_url=live.url
    )
    context.add_init_script("localStorage.setItem('fanlight-tour', 'done')")
    shown, wrong = context.new_page(), []
    shown.on("pageerror", lambda e: wrong.append(str(e)))
    shown.on("response", lambda r: wrong.append(f"{r.status} {r.url}") if r.status >= 500 else None)
    shown.on("request", lambda r: None if r.url.startswith((live.url, "blob:", "data:")) else wrong.append(r.url))
    yield shown
    context.close()
    assert not wrong, wrong


def shot(page: Any, name: str) -> None:
    OUT.mkdir(exist_ok=True)
    page.screenshot(path=OUT / f"{name}.png", full_page=True)


def painted(page: Any, count: int = 1) -> None:
    """Waits until as many maps are on the screen, picture and drawing loaded."""
    truth = "i.complete && i.naturalWidth"
    until(page, f"(m => m.length >= {count} && m.every(i => {truth}))([...document.querySelectorAll('.map .over')])")


def until(page: Any, truth: str, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(truth):
        assert time.monotonic() < end, f"waited in vain for {truth}"
        time.sleep(0.02)


def faults(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in found if v["impact"] in ("serious", "critical")]


def picture() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.uint8(120 + 100 * np.stack([waves(i + 3) for i in range(3)], -1) / 0.08)).save(out, "PNG")
    return out.getvalue()


def stored(live: Live, explainer: str = "saliency") -> wire.Explanation:
    return live.wire.explain(wire.ExplanationRequest(model="net", input=live.wire.sample, explainer=explainer))


def test_from_an_upload_to_maps_side_by_side_and_back_after_a_refresh(page: Any, live: Live) -> None:
    page.goto("/explain")
    page.wait_for_selector("#wb-go")
    assert page.locator("#wb-go").is_disabled()
    page.set_input_files("#upload-file", {"name": "mine.png", "mimeType": "image/png", "buffer": picture()})
    page.wait_for_selector("#wb-go:enabled")
    assert "mine.png" in page.locator("#wb-about").inner_text()
    page.locator("label", has_text="Occlusion").click()
    page.wait_for_selector("text=Colour that hides.", state="attached")
    page.click("#wb-go")
    until(page, "document.querySelectorAll('.slot:not([hidden])').length === 2", 0.5)
    painted(page)
    page.wait_for_selector("text=2 before it in the queue")
    page.wait_for_selector("text=Why “guenon”?")
    job = next(j for j in live.wire.jobs.values() if j.title == "Occlusion")
    live.soon(live.wire.advance, job.id, state="running", place=None, progress=0.5, seconds_left=3.0)
    page.wait_for_selector("text=50 %")
    page.reload()  # nothing is lost: the address holds the panels, the server holds the job
    page.wait_for_selector("text=50 %")
    painted(page)
    live.soon(live.wire.advance, job.id, state="succeeded", progress=1.0)
    painted(page, 2)
    shot(page, "workbench")
    live.soon(live.wire.trust, job.explanation, faithfulness=0.52, above_floor=True)
    page.wait_for_selector("text=faithfulness +0.52")
    assert "results=" in page.url and "explainers=saliency%2Cocclusion" in page.url
    page.get_by_role("link", name="Occlusion").click()
    page.wait_for_selector("#ex-body .over")
    page.go_back()
    painted(page, 2)
    assert faults(page) == []


def test_a_sample_is_chosen_by_keyboard_and_the_form_goes_into_the_address(page: Any, live: Live) -> None:
    page.goto("/explain")
    page.locator(".sample").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#wb-go:enabled")
    page.locator("details.method summary").first.press("Enter")
    page.get_by_label("Smoothing samples").fill("12")
    page.keyboard.press("Tab")
    until(page, "location.search.includes('smooth')")
    page.locator("#wb-go").press("Enter")
    painted(page)
    assert live.wire.asked[-1]["params"] == {"smooth": 12}
    page.reload()
    painted(page)
    assert page.get_by_label("Smoothing samples").input_value() == "12"


def test_after_explain_the_results_are_in_view_and_the_keyboard_goes_on_from_them(browser: Any, live: Live) -> None:
    for shown in opened(browser, live, width=1366, height=500):
        for keyboard in (True, False):
            shown.goto(f"/explain?input={live.wire.sample}&explainers=saliency")
            shown.wait_for_selector("#wb-go:enabled")
            shown.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            if keyboard:
                shown.locator("#wb-go").press("Enter")
            else:
                shown.locator("#wb-go").click()
            painted(shown)
            until(shown, "(r => r.top >= 0 && r.top < 100)(document.querySelector('.slots').getBoundingClientRect())")
            assert shown.evaluate("document.activeElement.id") == ("wb-results" if keyboard else "wb-go")


def test_what_has_the_keyboard_is_not_covered_by_the_bar_of_the_button(browser: Any, live: Live) -> None:
    covered = """() => {
      const at = document.activeElement, bar = document.querySelector('.go');
      const shape = at.matches('[type=checkbox]') ? at.parentElement.querySelector('label') ?? at : at;
      return !bar.contains(at) && shape.getBoundingClientRect().bottom > bar.getBoundingClientRect().top;
    }"""
    for shown in opened(browser, live, width=1366, height=420):
        shown.goto("/explain")
        shown.wait_for_selector("#wb-go")
        shown.locator("#wb-model").focus()
        for _ in range(60):
            shown.keyboard.press("Tab")
            if shown.evaluate("document.activeElement.id") == "wb-seed":
                break
            assert not shown.evaluate(covered), shown.evaluate("document.activeElement.outerHTML")
        else:
            raise AssertionError("the last field was not reached")
        assert not shown.evaluate(covered)


def test_a_file_that_is_no_picture_is_refused_in_a_sentence(page: Any) -> None:
    page.goto("/explain")
    page.wait_for_selector("#wb-go")
    page.set_input_files("#upload-file", {"name": "notes.png", "mimeType": "image/png", "buffer": b"text"})
    page.wait_for_selector("text=notes.png is not a picture. Send a JPEG, PNG or WebP file.")


def test_a_refused_file_leaves_the_picture_that_was_chosen(page: Any) -> None:
    page.goto("/explain")
    page.wait_for_selector("#wb-go")
    page.set_input_files("#upload-file", {"name": "mine.png", "mimeType": "image/png", "buffer": picture()})
    page.wait_for_selector("#wb-go:enabled")
    chosen = re.search(r"[?&]input=(\w+)", page.url)[1]
    for wrong in ("notes.png", "more.png"):
        page.set_input_files("#upload-file", {"name": wrong, "mimeType": "image/png", "buffer": b"text"})
        page.wait_for_selector(f"text={wrong} is not a picture.")
        page.wait_for_selector("#wb-go:enabled")
        assert f"input={chosen}" in page.url and "mine.png" in page.locator("#wb-about").inner_text()
        until(page, "(i => !i.hidden && i.complete && i.naturalWidth > 0)(document.getElementById('wb-picture'))")
    page.locator(".sample").first.click()
    until(page, "!document.querySelector('[data-upload-status]').textContent")
    page.click("#wb-go")
    painted(page)


def test_a_long_name_of_a_method_stays_within_the_form(page: Any) -> None:
    page.goto("/explain")
    page.wait_for_selector("#wb-go")
    page.evaluate(
        "document.querySelector('.chips label').lastChild.textContent = 'Guided backpropagation, a bad example'"
    )
    assert (
        page.evaluate("""(() => {
      const rail = document.querySelector('.rail'), edge = rail.getBoundingClientRect().right - 16;
      return [...rail.querySelectorAll('.step-of *')].filter((e) => e.getBoundingClientRect().right > edge + 0.5).length;
    })()""")
        == 0
    )


def test_a_running_job_is_cancelled_from_its_panel(page: Any, live: Live) -> None:
    page.goto(f"/explain?input={live.wire.sample}&explainers=occlusion")
    page.locator("#wb-go:enabled").click()
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("text=It was cancelled before it finished")


def test_the_same_pixel_is_read_in_all_maps_by_pointer_and_by_arrow_keys(page: Any, live: Live) -> None:
    a, b = stored(live), stored(live, "patches")
    page.goto(f"/explain?input={a.input}&explainers=saliency,patches&results={a.id},{b.id}")
    painted(page, 2)
    page.locator(".map").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.wait_for_selector("text=pixel 113, 122")
    values = page.locator(".map .pixel").all_inner_texts()
    from fanlight.artifact import Artifact

    stored_value = Artifact.from_bytes(live.wire.blobs[a.artifacts[0].digest]).arrays["value"][122, 113]
    assert float(values[0].replace("\u2212", "-")) == pytest.approx(float(stored_value), rel=0.01)
    assert len(values) == 2 and all(values)
    box = page.locator(".map").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 10.5 / SIDE, box["y"] + box["height"] * 20.5 / SIDE)
    page.wait_for_selector("text=pixel 10, 20")


def test_a_record_opens_whole_and_its_trust_arrives_without_a_reload(page: Any, live: Live) -> None:
    one = stored(live)
    page.goto(f"/e/{one.id}")
    painted(page)
    page.wait_for_selector("text=Trust is being measured")
    live.soon(live.wire.trust, one.id, faithfulness=0.02, insertion=0.1, deletion=-0.06, above_floor=False)
    page.wait_for_selector("text=Not above the random floor here: do not read it.")
    page.wait_for_selector("text=not above chance, +0.02")
    shot(page, "explanation")
    assert faults(page) == []


def test_a_part_is_hidden_by_drawing_on_the_picture(page: Any, live: Live) -> None:
    one = stored(live)
    page.goto(f"/e/{one.id}")
    page.click("#ex-change")
    page.wait_for_selector(".sketch img")
    until(page, "document.querySelector('.sketch img').complete")
    box = page.locator(".sketch").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    until(page, "document.getElementById('ex-hide-left').value.startsWith('56')")
    shot(page, "explanation-change")
    page.click("#ex-hide")
    page.wait_for_url(f"**/e/{one.id}i")
    page.wait_for_selector("text=was 95.2 %")
    assert live.wire.records[one.id + "i"].edits == [{"mask_region": [56, 56, 112, 112]}]
    shot(page, "explanation-changed")


def test_share_export_and_delete_work_from_the_keyboard(page: Any, live: Live) -> None:
    one = stored(live)
    page.goto(f"/e/{one.id}")
    painted(page)
    page.locator("#ex-share").press("Enter")
    page.locator("#ex-share-make").press("Enter")
    page.wait_for_selector("text=http://127.0.0.1/s/tok")
    shot(page, "explanation-share")
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.wait_for_selector("#ex-share:focus")  # focus comes back, which would close a menu that is open by then
    page.locator("#ex-export summary").press("Enter")
    assert page.get_by_text("Table (CSV)").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_text("Table (CSV)").is_visible()
    page.locator("summary", has_text="Title, tags, note").press("Enter")
    page.locator("#ex-delete").press("Enter")
    page.wait_for_selector("text=will be revoked")
    page.locator("#ex-delete-sure").press("Enter")
    until(page, "location.pathname === '/'")
    assert one.id not in live.wire.records


def test_previous_and_next_walk_the_list_it_was_opened_from(page: Any, live: Live) -> None:
    first, second = stored(live), stored(live)
    page.goto("/")
    page.locator(f"a[href='/e/{first.id}']").click()
    painted(page)
    page.keyboard.press("j")
    page.wait_for_url(f"**/e/{second.id}")
    until(page, "!document.querySelector('a[data-go=previous]').hidden")
    page.get_by_role("link", name="Previous explanation").click()
    page.wait_for_url(f"**/e/{first.id}")


def test_a_record_that_was_deleted_elsewhere_says_so(page: Any, live: Live) -> None:
    one = stored(live, "occlusion")
    page.goto(f"/e/{one.id}")
    page.wait_for_selector("text=before it in the queue")
    del live.wire.records[one.id]
    page.wait_for_selector("text=It is not here any more")


@pytest.mark.parametrize("live", ["/fanlight"], indirect=True)
def test_both_pages_work_below_a_path_prefix(page: Any, live: Live) -> None:
    page.goto(f"{live.url}/explain")
    page.wait_for_selector("#wb-go")
    page.set_input_files("#upload-file", {"name": "mine.png", "mimeType": "image/png", "buffer": picture()})
    page.locator("#wb-go:enabled").click()
    painted(page)
    assert page.url.startswith(f"{live.url}/explain?")
    page.locator(".slot h3 a").first.click()
    page.wait_for_url(f"{live.url}/e/*")
    page.wait_for_selector("#ex-body .over")
    page.locator(".map").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=pixel 113, 112")


def test_a_failed_record_says_why_and_a_missing_one_that_it_is_not_there(page: Any, live: Live) -> None:
    page.goto(f"/e/{stored(live, 'broken').id}")
    page.wait_for_selector("text=The model returned NaN.")
    page.goto("/e/nothing")
    page.wait_for_selector("text=There is no explanation named “nothing”.")


def test_names_that_look_like_markup_stay_text(page: Any, live: Live) -> None:
    bad = "<img src=x onerror=alert(1)>"
    one = stored(live)
    live.wire.put(
        one.model_copy(update={"title": bad, "input_name": bad, "note": bad, "tags": ["<b>t</b>"], "summary": bad})
    )
    page.goto(f"/e/{one.id}")
    painted(page)
    assert page.locator("h1").inner_text() == bad
    assert page.locator("img[src=x]").count() == 0


def test_on_a_phone_nothing_is_wider_than_the_screen_and_the_map_comes_first(phone: Any, live: Live) -> None:
    one = stored(live)
    phone.goto(f"/e/{one.id}")
    painted(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert phone.evaluate("document.querySelector('.map').getBoundingClientRect().top") < 420
    shot(phone, "explanation-phone")
    phone.goto(f"/explain?input={one.input}&explainers=saliency&results={one.id}")
    painted(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert phone.get_by_role("button", name="Camera").is_visible()
    shot(phone, "workbench-phone")


def test_dark_and_two_hundred_per_cent_keep_their_contrast_and_their_width(browser: Any, live: Live) -> None:
    one = stored(live)
    live.wire.trust(one.id, faithfulness=0.4, above_floor=True)
    for shown in opened(browser, live, width=667, height=448, scheme="dark"):  # 1334 px at 200 %
        for address, name in (
            (f"/e/{one.id}", "explanation-dark"),
            (f"/explain?input={one.input}&results={one.id}", "workbench-dark"),
        ):
            shown.goto(address)
            painted(shown)
            assert shown.evaluate("document.documentElement.scrollWidth") <= 667
            assert faults(shown) == []
            shot(shown, name)
