"""Correcting what a model says it sees: from the workbench to a link, and two people who never meet."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor, percent
from PIL import Image

import fanlight_models
from fanlight.client import Client
from fanlight_models.worlds.fieldguide import draw, split
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
MODEL = "scbm-field-guide"


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """A server whose only model is the stochastic bottleneck of the field guide."""
    bundle = Path(fanlight_models.__file__).parent / "bundles" / MODEL
    with FanlightServer(tmp_path_factory.mktemp("concepts"), models=str(bundle), default_model=False) as started:
        yield started


def bird(n: int = 0) -> bytes:
    """A scene of the test split as PNG: no person has explained it before."""
    scene = list(split("test", n + 1))[n]
    out = io.BytesIO()
    Image.fromarray(draw(scene, 176).image).save(out, "PNG")
    return out.getvalue()


def record(server: FanlightServer, n: int) -> str:
    """A finished explanation by concepts."""
    with Client(server.url, server.token) as client:
        found = client.explain(MODEL, client.upload(bird(n), f"bird-{n}.png").id, "scbm")
    assert found.state == "succeeded"
    return str(found.id)


def answer(me: Visitor, concept: str, word: str) -> None:
    me.page.get_by_role("radiogroup", name=f"Answer: {concept}", exact=True).get_by_role("radio", name=word).click()


def probability(me: Visitor, concept: str) -> float:
    bar = me.page.get_by_role("slider", name=f"Probability of {concept}", exact=True)
    return float(bar.get_attribute("aria-valuenow"))


def saw(me: Visitor, concept: str, value: float) -> None:
    me.until(
        "([name, value]) => document.querySelector(`[aria-label='Probability of ${name}']`)?.getAttribute('aria-valuenow') === value",
        [concept, f"{value:.2f}"],
    )


def best(me: Visitor) -> tuple[str, float]:
    row = me.page.locator("#co-classes li").first
    return row.locator(".name").inner_text(), percent(row.locator(".number").inner_text())


def every(me: Visitor) -> dict[str, str]:
    """All probabilities, as they are painted."""
    found: dict[str, str] = me.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.co-row')].map(r => [r.dataset.concept, r.querySelector('.co-p').textContent]))"
    )
    return found


def test_from_the_workbench_to_a_link(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter()
        page.goto(f"{me.url}/explain?model={MODEL}")
        page.wait_for_selector("#wb-go")
        me.upload("my-bird.png", bird(5))
        me.methods("Prediction by concepts")
        page.click("#wb-go")
        page.click(".slot:visible >> text=Correct the concepts")
        page.wait_for_selector(".co-asked li")
        assert page.inner_text("#co-title") == "What does it see?"
        assert "as the model saw it" in page.inner_text("#co-state")
        assert page.locator(".co-row").count() == 79
        me.shot("concepts")
        assert me.faults() == []
        found, before = every(me), best(me)

        answer(me, "crest long", "yes")
        saw(me, "crest long", 1)
        assert page.inner_text("#co-title") == "What if the crest is long?"
        moved = [k for k, p in every(me).items() if p != found[k]]
        assert len(moved) > 5, "others move by correlation"
        assert page.locator(".co-row.moved .ghost:visible").count() >= 5
        assert "Answered: crest long yes." in page.inner_text("#co-reason")
        answer(me, "bill colour red", "no")
        saw(me, "bill colour red", 0)
        assert "You answered 2" in page.inner_text("#co-moved")
        two = every(me)
        assert me.faults() == []
        me.shot("concepts-answered")

        page.click("#co-undo")
        me.until("() => document.querySelector('#co-moved').textContent.startsWith('You answered 1')")
        page.click("#co-redo")
        me.until(
            "two => [...document.querySelectorAll('.co-row')].every(r => r.querySelector('.co-p').textContent === two[r.dataset.concept])",
            two,
        )
        page.reload()
        page.wait_for_selector(".co-row")
        me.until(
            "two => [...document.querySelectorAll('.co-row')].every(r => r.querySelector('.co-p').textContent === two[r.dataset.concept])",
            two,
        )
        assert "unsaved" in page.inner_text("#co-state")
        assert page.locator("#co-steps li").count() == 3, "a reload keeps the steps too"
        page.click("#co-undo")
        me.until("() => document.querySelector('#co-moved').textContent.startsWith('You answered 1')")
        page.reload()
        page.wait_for_selector(".co-row")
        me.until("() => document.querySelector('#co-moved').textContent.startsWith('You answered 1')")
        page.click("#co-redo")
        me.until("() => document.querySelector('#co-moved').textContent.startsWith('You answered 2')")
        me.until(
            "two => [...document.querySelectorAll('.co-row')].every(r => r.querySelector('.co-p').textContent === two[r.dataset.concept])",
            two,
        )

        page.click("#co-save")
        me.until("() => document.querySelector('#co-state')?.textContent === 'saved'")
        assert "answers=" not in page.url
        assert every(me) == two, "what was saved is what was shown"
        assert "crest long yes; bill colour red no" in page.inner_text(".co-log")
        after = best(me)
        page.click("#ex-recompute")
        page.wait_for_selector("#ex-verdict >> text=equal, bit for bit", timeout=120_000)

        page.click("#co-share")
        page.click("#ex-share-make")
        link = page.inner_text("#ex-share-url")
        with visitor(link=True) as stranger:
            assert stranger.page.goto(link).status == 200
            text = stranger.page.inner_text("body")
            assert "Answered: crest long yes and bill colour red no." in text and after[0] in text
            assert stranger.page.locator("img").evaluate_all("all => all.every(i => i.complete && i.naturalWidth)")
            assert stranger.page.locator(".co-row, button").count() == 0, "nothing can be changed here"
            stranger.shot("concepts-shared")
        assert before != after


def test_two_people_on_one_record_never_see_each_others_answers(visitor: Come, server: FanlightServer) -> None:
    ident = record(server, 10)
    with visitor() as one, visitor() as other:
        for who in (one, other):
            who.enter(f"/e/{ident}/concepts")
            who.page.wait_for_selector(".co-asked li")
        found = every(one)
        assert every(other) == found
        answer(one, "back blue", "yes")
        answer(other, "back blue", "no")
        saw(one, "back blue", 1)
        saw(other, "back blue", 0)
        answer(one, "tail length long", "yes")
        saw(one, "tail length long", 1)
        mine, theirs = every(one), every(other)
        assert probability(other, "tail length long") != 1
        other.page.reload()
        other.page.wait_for_selector(".co-asked li, #co-questions-said:not(:empty)")
        saw(other, "back blue", 0)
        assert every(other) == theirs and every(one) == mine
        with visitor() as third:
            third.enter(f"/e/{ident}/concepts")
            third.page.wait_for_selector(".co-asked li")
            assert every(third) == found


def test_a_question_without_an_answer_is_asked_again(visitor: Come, server: FanlightServer) -> None:
    ident = record(server, 9)
    lost = iter(["refused", "cut"])

    def lose(route: Any) -> None:
        how = next(lost, None) if '"suggest"' in (route.request.post_data or "") else None
        if how == "refused":
            error = {"code": "busy", "message": "Too much is asked at once."}
            route.fulfill(status=429, content_type="application/json", body=json.dumps({"error": error}))
        elif how == "cut":
            route.abort()
        else:
            route.continue_()

    with visitor() as me:
        me.page.route("**/api/v1/live", lose)
        me.enter(f"/e/{ident}/concepts")
        me.page.wait_for_selector("#co-questions-said >> text=Too much is asked at once. It is asked again in 1 s.")
        me.page.wait_for_selector("#co-questions-said >> text=The server does not answer. It is asked again in 2 s.")
        me.page.wait_for_selector(".co-asked li")
        assert "Expected rise" in me.page.inner_text("#co-questions-said")
        me.wrong.clear()


def test_by_keyboard_alone_and_on_a_phone_in_the_dark(visitor: Come, server: FanlightServer) -> None:
    ident = record(server, 7)
    with visitor() as me:
        page = me.enter(f"/e/{ident}/concepts")
        page.wait_for_selector(".co-asked li")
        me.tab_to(".co-row")
        name = page.evaluate("document.activeElement.closest('.co-row').querySelector('[role=slider]').ariaLabel")
        page.keyboard.press("y")
        saw(me, name.removeprefix("Probability of "), 1)
        me.tab_to("[role=slider]")
        page.keyboard.press("ArrowDown")
        second = page.evaluate("document.activeElement.ariaLabel").removeprefix("Probability of ")
        page.keyboard.press("n")
        saw(me, second, 0)
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        me.until("() => /[:,]0\\.0|%3A0\\.0/.test(location.search)")
        page.keyboard.press("Control+z")
        saw(me, second, 0)
        me.until('() => location.search.includes("answers=0%3Ayes")')
    with visitor(size=PHONE, scheme="dark") as small:
        page = small.enter(f"/e/{ident}/concepts")
        page.wait_for_selector(".co-asked li")
        answer(small, "size large", "yes")
        saw(small, "size large", 1)
        assert small.sideways() <= 0
        assert small.faults() == []
        small.shot("concepts-phone", full=True)


def test_where_a_concept_is_seen_and_what_cannot_be_meant(visitor: Come, server: FanlightServer) -> None:
    ident = record(server, 8)
    with visitor() as me:
        page: Any = me.enter(f"/e/{ident}/concepts")
        page.wait_for_selector(".co-asked li")
        page.locator(".co-row", has=page.get_by_label("Answer: bill shape hooked", exact=True)).locator(
            ".co-name"
        ).click()
        page.wait_for_selector("#co-over:visible", timeout=60_000)
        assert "Evidence for bill shape hooked" in page.inner_text("#co-evidence")
        answer(me, "size small", "no")
        answer(me, "size medium", "no")
        saw(me, "size medium", 0)
        answer(me, "size large", "no")
        page.wait_for_selector("#co-problem >> text=all were answered with no")
        saw(me, "size medium", 0)
        assert "You answered 2" in page.inner_text("#co-moved"), "the answers before stay"
        assert all("422" in w for w in me.wrong)
        me.wrong.clear()
