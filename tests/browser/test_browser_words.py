"""Somebody writes a prompt, sees which word put what where, changes one and sends it to somebody else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor
from PIL import Image

from fanlight.client import Client
from support.processes import FanlightServer
from support.prompts import explained

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
PROMPT = "a red circle left of a blue cross"


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """A server whose only models are those of the scenes."""
    with FanlightServer(tmp_path_factory.mktemp("words"), scenes=True, default_model=False) as started:
        yield started


@pytest.fixture(scope="module")
def record(server: FanlightServer) -> Any:
    return explained(server, PROMPT)


def number(text: str) -> float:
    found = re.search(r"[-\u2212+]?[\d.]+(e[-\u2212]?\d+)?", text)
    assert found, text
    return float(found[0].replace("\u2212", "-"))


def chip(page: Any, word: str) -> Any:
    return page.locator("#wd-chips button", has_text=re.compile(rf"(^|[AB]){word}$")).first


def titles(page: Any) -> list[str]:
    return [t.strip() for t in page.locator("#wd-maps figure .wd-caption strong").all_inner_texts()]


def sums(page: Any) -> dict[str, float]:
    said = page.locator("#wd-maps figure .wd-caption .num").all_inner_texts()
    names = ["a", "b", "both", "synergy", "redundant", "unique_a", "unique_b"]
    return {n: number(t) for n, t in zip(names, said, strict=True)}


def test_type_a_prompt_click_two_words_read_maps_drop_one_share_open_elsewhere(
    visitor: Come, server: FanlightServer
) -> None:
    with visitor() as me:
        page = me.enter("/explain")
        page.click("#wb-model")
        page.click("[role=option]:has-text('Scenes, exact')")
        page.wait_for_selector("#wb-ask:not([hidden])")
        assert page.is_disabled("#wb-go") and not page.is_visible("#wb-pick")
        page.fill("#wb-prompt", PROMPT)
        page.wait_for_selector("#wb-go:enabled")
        page.press("#wb-prompt", "Enter")
        page.wait_for_selector(".slot .about >> text=computed in")
        assert "input=" in page.url and "prompt=" not in page.url
        me.shot("words-workbench", full=True)
        assert me.faults() == []

        page.click(".slot a:has-text('Which word put what where?')")
        page.wait_for_selector("#wd-maps canvas")
        assert titles(page)[:3] == ["A: red", "B: circle", "both"]
        chip(page, "blue").click()  # one word
        me.until("document.querySelector('#wd-map-a strong').textContent === 'A: blue'")
        assert page.locator(".wd-empty:visible").count() == 6
        chip(page, "cross").click()  # and another
        me.until("document.querySelector('#wd-map-b strong').textContent === 'B: cross'")
        assert page.locator(".wd-empty:visible").count() == 0 and page.locator("#wd-maps canvas:visible").count() == 7
        found = sums(page)
        parts = found["redundant"] + found["unique_a"] + found["unique_b"] + found["synergy"]
        assert parts == pytest.approx(found["both"], abs=0.02)
        assert found["redundant"] + found["unique_a"] == pytest.approx(found["a"], abs=0.01)

        # the values under the pointer are those that are stored
        page.hover("#wd-map-both .wd-frame", position={"x": 90, "y": 90})
        page.wait_for_selector("#wd-map-both .read .pixel, #wd-map-both .wd-frame.read")
        place = re.findall(r"\d+", page.inner_text("[data-wd=place]"))
        record = page.url.split("/e/")[1].split("/")[0]
        with Client(server.url, server.token) as fan:
            stored = fan.artifact(fan.explanation(record).artifacts[0].digest)
        names = [w[2] for w in stored.meta["words"]]
        _, _, _, _, both = next(p for p in stored.meta["pairs"] if p[:2] == [names.index("blue"), names.index("cross")])
        raw = stored.arrays["terms"][both].mean(0)[int(place[1]) - 1, int(place[0]) - 1]
        assert number(page.inner_text("#wd-map-both .pixel")) == pytest.approx(float(raw), rel=0.01, abs=1e-11)
        me.shot("words", full=True)
        assert me.faults() == [] and me.sideways() <= 0

        # drop a word: the same noise, another prompt, both pictures beside each other
        page.click("[data-way=drop_word]")
        page.select_option("#wd-which", label="blue")
        page.click("#wd-draw")
        page.wait_for_selector("#wd-redrawn:not([hidden])")
        assert record not in page.url and "without “blue”" in page.inner_text("#wd-redrawn h2")
        assert page.locator("#wd-redrawn img").evaluate_all("all => all.every(i => i.naturalWidth)")
        assert page.inner_text("#wd-map-a strong") == "A: blue", "what was chosen stays"
        assert re.search(r"foretold: [\u2212\d.]+ ", page.inner_text("[data-wd=redrawn-said]"))
        me.shot("words-redrawn", full=True)
        assert me.faults() == []

        page.click("#ex-share")
        page.click("#ex-share-make")
        page.wait_for_selector("#ex-share-url")
        link = page.inner_text("#ex-share-url")
    with visitor(link=True) as you:
        you.page.goto(link)
        you.page.wait_for_selector("main")
        said = you.page.inner_text("main")
        assert PROMPT in said and "blue" in said and "nat" in said
        assert you.page.locator("main img").first.evaluate("img => img.naturalWidth") > 0
        you.shot("words-shared", full=True)
        assert you.faults() == []


def test_rule_band_undo_reload_and_save(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        before = sums(page)
        page.click("[data-rule=pointwise]")
        me.until("document.querySelector('[data-rule=pointwise]').getAttribute('aria-pressed') === 'true'")
        larger = sums(page)
        assert larger["redundant"] > before["redundant"] and larger["unique_a"] <= 0.001
        page.locator("#wd-chances input").first.fill("0.2")
        page.locator("#wd-chances input").last.fill("0.1")
        page.keyboard.press("Tab")
        page.wait_for_selector("[data-wd=facts] >> text=probabilities 0.20 and 0.10")
        low = page.locator("[data-wd=range] input").first
        low.focus()
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        page.wait_for_selector("[data-wd=band-said] >> text=only")
        me.until(
            "n => Math.abs(parseFloat(document.querySelector('#wd-map-both .wd-caption .num').textContent) - n) > 0.001",
            before["both"],
        )
        assert sums(page)["both"] < before["both"]
        kept = page.url
        page.reload()
        page.wait_for_selector("[data-wd=band-said] >> text=only")
        assert page.url == kept
        page.click("#wd-save")
        page.wait_for_url(lambda u: record.id not in u)
        page.wait_for_selector("[data-wd=band-said] >> text=only")
        page.wait_for_selector("#wd-save:disabled")
        assert "edits=" not in page.url and sums(page)["both"] < before["both"]

        page.goto(kept)
        page.wait_for_selector("#wd-undo:enabled")
        while page.is_enabled("#wd-undo"):  # steps outlive a reload
            page.click("#wd-undo")
        me.until("document.querySelector('[data-rule=min]').getAttribute('aria-pressed') === 'true'")
        me.until(
            "n => Math.abs(parseFloat(document.querySelector('#wd-map-both .wd-caption .num').textContent) - n) < 0.001",
            before["both"],
        )
        assert sums(page) == before


def reads(page: Any) -> str:
    said: str = page.inner_text("[data-wd=reads]") if page.is_visible("[data-wd=reads]") else ""
    return said


def test_words_are_exchanged_weighed_and_reordered_and_drawn_with_the_same_noise(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        page.click("[data-way=weigh_word]")
        page.select_option("#wd-which", label="blue")
        page.fill("#wd-weight", "2.5")
        assert reads(page) == "“a red circle left of a blue × 2.5 cross”" and "weigh_word" in page.url
        page.click("[data-way=reorder_words]")
        page.click("[aria-label='red: one place later']")
        assert reads(page) == "“a circle red left of a blue cross”"
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "red: one place later"
        page.click("[data-way=exchange_words]")
        page.select_option("#wd-which", label="red")
        page.select_option("#wd-with", label="blue")
        exchanged = reads(page)
        assert exchanged == "“a blue circle left of a red cross”"
        page.reload()
        page.wait_for_selector("#wd-draw:enabled")
        assert reads(page) == exchanged, "the address holds what was not drawn yet"
        while page.is_enabled("#wd-undo"):
            page.keyboard.press("Control+z")
        assert reads(page) == "" and page.is_disabled("#wd-draw") and "edits=" not in page.url
        while page.is_enabled("#wd-redo"):
            page.keyboard.press("Control+Shift+z")
        assert reads(page) == exchanged
        assert me.faults() == []

        page.click("#wd-draw")
        page.wait_for_url(lambda u: record.id not in u)
        page.wait_for_selector("#wd-redrawn:not([hidden])")
        with Client(me.url, me.token) as fan:
            new = fan.explanation(page.url.split("/e/")[1].split("/")[0])
            told = fan.describe(new.artifacts[0].digest)["detail"]["moved"]
        assert new.parent == record.id and list(new.edits) == [{"exchange_words": [1, 6]}]
        said = page.inner_text("[data-wd=redrawn-said]")
        assert number(said.split("foretold: ")[1]) == pytest.approx(told["correlation"], abs=0.006)
        page.select_option("#wd-beside", "redundant")
        said = page.inner_text("[data-wd=redrawn-said]")
        assert number(said.split("redundant: ")[1]) == pytest.approx(told["correlations"]["redundant"], abs=0.006)
        assert page.is_disabled("#wd-draw") and page.is_disabled("#wd-save")
        page.click("#wd-back")
        page.wait_for_selector("#wd-redrawn", state="hidden")
        assert me.sideways() <= 0 and me.faults() == []


def test_a_region_is_marked_by_hand_by_keys_and_by_its_corners_and_other_maps_stand_beside(
    visitor: Come, record: Any
) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        page.click("#wd-mark")
        picture = page.locator("[data-map=picture]")
        box = picture.bounding_box()
        place = [
            (box["x"] + box["width"] * (c + 0.5) / 16, box["y"] + box["height"] * (r + 0.5) / 16)
            for r, c in ((2, 2), (2, 6))
        ]
        page.mouse.move(*place[0])
        page.mouse.down()
        page.mouse.move(*place[1], steps=3)
        page.mouse.up()
        assert page.inner_text("[data-wd=region-said]").startswith("5 of 256 places"), "a stroke has no holes"
        picture.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
        assert page.inner_text("[data-wd=region-said]").startswith("6 of 256 places")
        page.click(".wd-marking summary")
        for name, value in (("left", 1), ("right", 8), ("top", 1), ("bottom", 16)):
            page.fill(f"#wd-{name}", str(value))
        page.click("#wd-box")
        assert page.inner_text("[data-wd=region-said]").startswith("128 of 256 places, 50 %")
        with Client(me.url, me.token) as fan:
            detail = fan.describe(record.artifacts[0].digest)["detail"]
        red = sum(sum(row[:8]) for row in detail["singles"][0]["values"])
        said = page.locator(".wd-inside tbody tr").first.locator("td").all_inner_texts()
        assert number(said[0]) == pytest.approx(red, rel=0.01)
        page.select_option("#wd-add", "floor_map")
        page.select_option("#wd-add", label="word: blue")
        assert page.locator(".wd-others figure:visible").count() == 2
        page.click("text=normalise each map")
        after = "getComputedStyle(document.querySelector('#wd-map-both figcaption'), '::after').content"
        assert page.evaluate(after).startswith('"scale to'), "a map on a scale of its own says so"
        kept = page.url
        page.reload()
        page.wait_for_selector(".wd-others canvas")
        assert page.url == kept and page.inner_text("[data-wd=region-said]").startswith("128 of 256")
        page.click("[data-away=floor_map]")
        assert page.locator(".wd-others figure strong").all_inner_texts() == ["word: blue"]
        me.shot("words-region", full=True)
        assert me.sideways() <= 0 and me.faults() == []
        page.click("#wd-clear")
        assert "region=" not in page.url


def test_a_word_that_was_not_measured_is_asked_about(visitor: Come, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-chips button")
        chip(page, "of").click()
        page.click("[data-measure]")
        page.wait_for_url(lambda u: record.id not in u)
        page.wait_for_selector("#wd-map-b strong:has-text('of')")
        page.click("[data-context=false]")
        page.wait_for_selector("[data-context=false][aria-pressed=true]")
        assert titles(page)[:2] == ["A: red", "B: of"]


def test_two_results_are_compared_map_by_map_and_tools_that_do_nothing_are_not_shown(
    visitor: Come, server: FanlightServer, record: Any
) -> None:
    with Client(server.url, server.token) as fan:
        other = fan.explain(
            model="scenes-exact", input=record.input, explainer="diffusion-pid", params={"guidance": 1}, seed=1
        )
    with visitor() as me:
        page = me.enter(f"/e/{record.id}")
        page.goto(f"{me.url}/compare?ids={record.id},{other.id}")
        page.wait_for_selector(".words-drawn")
        assert page.locator(".words-drawn").count() == 2 and "All maps are on one scale" in page.inner_text("main")
        me.painted(1)  # the difference, over the picture that was drawn
        page.click("nav[aria-label='Which map is compared'] a:has-text('synergy')")
        page.wait_for_url(lambda u: "map=synergy" in u)
        page.wait_for_selector("nav a.here:has-text('synergy')")
        me.painted(1)
        page.click("text=Each on its own scale")
        page.wait_for_url(lambda u: "scale=own" in u and "map=synergy" in u)
        me.shot("words-compared", full=True)
        assert me.sideways() <= 0 and me.faults() == []

        page.goto(f"{me.url}/explain?model=scenes-exact&input={record.input}&results={record.id}")
        page.wait_for_selector(".slot .words-drawn")
        assert not page.is_visible("#wb-opacity") and not page.is_visible(".stage .tools")


def test_a_choice_is_painted_at_once(visitor: Come, record: Any) -> None:
    """Thirty pairs, as fast as they are painted. The bound is loose: machines that test are busy."""
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        took = page.evaluate("""async () => {
            const title = document.querySelector("#wd-map-a strong"), times = [];
            for (let i = 0; i < 30; i++) {
                const [cell, word] = i % 2 ? ["0,1", "red"] : ["3,4", "blue"], t = performance.now();
                document.querySelector(`[data-cell="${cell}"]`).click();
                while (!title.textContent.includes(word)) await new Promise((r) => requestAnimationFrame(r));
                times.push(performance.now() - t);
            }
            return times.sort((a, b) => a - b);
        }""")
        assert took[len(took) // 2] < 500, took


def test_on_a_phone_in_the_dark_and_by_keyboard(visitor: Come, record: Any) -> None:
    with visitor(size=PHONE, scheme="dark") as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-chips button")
        me.tab_to("#wd-chips [data-token='6']", most=60)
        page.keyboard.press("Enter")
        me.until("document.querySelector('#wd-map-a strong').textContent === 'A: blue'")
        assert page.evaluate("document.activeElement.dataset.token") == "6", "the keyboard stays where it was"
        me.tab_to("[data-map=picture]", most=20)
        for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
            page.keyboard.press(key)
        assert (
            "Column 9, row 11" in page.inner_text("[data-wd=place]")
            and page.locator(".wd-frame.read:visible").count() >= 2
        )
        page.keyboard.press("Control+z")
        me.until("document.querySelector('#wd-map-a strong').textContent === 'A: red'")
        assert me.sideways() <= 0 and me.faults() == []
        me.shot("words-phone-dark", full=True)


def test_words_that_cannot_be_drawn_are_a_sentence_and_stay(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter("/explain")
        page.wait_for_selector("#wb-prompt")
        page.press("#wb-prompt", "Enter")
        page.wait_for_selector("#wb-prompt-said:has-text('Write what should be in the picture.')")
        page.fill("#wb-prompt", "a purple elephant")
        me.until("location.search.includes('prompt=a+purple+elephant')")
        page.reload()
        page.wait_for_selector("#wb-prompt")
        assert page.input_value("#wb-prompt") == "a purple elephant", "the address holds what was typed"
        page.press("#wb-prompt", "Enter")
        page.wait_for_selector(".slot >> text=is no word of this world")
        assert page.input_value("#wb-prompt") == "a purple elephant"
        assert all("422" in w for w in me.wrong), "refused before anything is promised, which the browser writes down"
        me.wrong.clear()
        assert me.faults() == []


def test_a_picture_of_ones_own_with_a_caption(visitor: Come, server: FanlightServer) -> None:
    out = io.BytesIO()
    scene = Image.new("RGB", (16, 16), (13, 13, 13))
    scene.paste((255, 26, 26), (1, 2, 7, 8))
    scene.paste((51, 77, 255), (9, 7, 15, 13))
    scene.resize((64, 64), Image.Resampling.NEAREST).save(out, "PNG")
    with visitor() as me:
        page = me.enter("/explain")
        page.fill("#wb-prompt", PROMPT)
        page.click("label:has-text('one of mine')")
        page.wait_for_selector("#wb-hint:not([hidden])")
        assert page.is_disabled("#wb-go")
        me.upload("scene.png", out.getvalue())
        page.click("#wb-go")
        page.wait_for_selector(".slot .about >> text=computed in")
        page.click(".slot a:has-text('Which word put what where?')")
        page.wait_for_selector("#wd-maps canvas")
        assert "was given, not drawn" in page.inner_text("#wd-page") and "a picture of your own" in page.inner_text(
            ".head"
        )
        me.shot("words-own-picture", full=True)
        assert me.faults() == []
