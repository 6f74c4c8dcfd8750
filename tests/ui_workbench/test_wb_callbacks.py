"""The callbacks of the two pages as plain functions, over the wire server."""

from __future__ import annotations

from typing import Any

import pytest
from dash import no_update
from wb_support import Pages, flat

from fanlight import wire
from fanlight_ui import panels


def run_of(pages: Pages, explainer: str, **more: Any) -> dict[str, Any]:
    return {"model": "net", "input": pages.wire.sample, "explainer": explainer, "params": {}, "seed": 0, **more}


def stored(pages: Pages, explainer: str = "saliency", **more: Any) -> wire.Explanation:
    return pages.wire.explain(
        wire.ExplanationRequest(model="net", input=pages.wire.sample, explainer=explainer), **more
    )


# --- workbench


def test_a_quick_method_is_one_request_and_comes_back_as_its_map(pages: Pages) -> None:
    shown, kept = pages.call(pages.module("workbench").explain, run_of(pages, "saliency"), {"slot": 1})
    assert "/render.png" in flat(shown) and kept["state"] == "succeeded" and kept["legend"]["unit"] == "logit"
    assert len(pages.wire.asked) == 1
    assert "guenon" in flat(pages.set("wb-prediction")) and pages.set("wb-title") == {"children": "Why “guenon”?"}
    assert "box=0" in pages.set("wb-picture")["src"]


def test_parameters_and_target_are_sent_with_their_types(pages: Pages) -> None:
    run = run_of(pages, "saliency", params={"smooth": "3"}, target=2, minus=0, seed=5)
    pages.call(pages.module("workbench").explain, run, {"slot": 0})
    asked = pages.wire.asked[0]
    assert asked["params"] == {"smooth": 3} and asked["target"] == {"minus": [2, 0]} and asked["seed"] == 5


def test_a_slow_method_shows_its_job_and_is_followed_to_its_map(pages: Pages) -> None:
    page = pages.module("workbench")
    shown, kept = pages.call(page.explain, run_of(pages, "occlusion"), {"slot": 0})
    assert "2 before it in the queue" in flat(shown) and kept["state"] == "queued"
    pages.wire.advance(kept["job"], state="running", place=None, progress=0.5)
    shown, kept = pages.call(page.follow, None, 1, kept, {"slot": 0})
    assert "50 %" in flat(shown) and kept["state"] == "running"
    pages.wire.advance(kept["job"], state="succeeded")
    shown, kept = pages.call(page.follow, {"type": "job"}, 1, kept, {"slot": 0})
    assert "/render.png" in flat(shown) and kept["state"] == "succeeded"


def test_trust_that_comes_later_changes_only_the_badge(pages: Pages) -> None:
    page = pages.module("workbench")
    _, kept = pages.call(page.explain, run_of(pages, "saliency"), {"slot": 0})
    pages.wire.trust(kept["id"], faithfulness=0.52, above_floor=True)
    shown, kept = pages.call(page.follow, {"type": "trust"}, 0, kept, {"slot": 0})
    assert shown is no_update and kept["trust"] == "succeeded"
    assert "+0.52" in flat(pages.set(panels.badge_id(0)))


def test_cancelling_stops_the_job_and_says_that_nothing_was_stored(pages: Pages) -> None:
    page = pages.module("workbench")
    _, kept = pages.call(page.explain, run_of(pages, "occlusion"), {"slot": 0})
    assert pages.call(page.cancel, None, kept, {"slot": 0}) == (no_update, no_update)
    shown, kept = pages.call(page.cancel, 1, kept, {"slot": 0})
    assert "nothing was stored" in flat(shown) and kept["state"] == "cancelled"


@pytest.mark.parametrize(
    ("explainer", "params", "said"),
    [
        ("nothing", {}, "no explainer named"),
        ("occlusion", {"window": 200}, "at most 112"),
        ("broken", {}, "returned NaN"),
    ],
)
def test_what_goes_wrong_is_a_sentence_in_the_panel(
    pages: Pages, explainer: str, params: dict[str, Any], said: str
) -> None:
    shown, kept = pages.call(pages.module("workbench").explain, run_of(pages, explainer, params=params), {"slot": 0})
    assert said in flat(shown) and kept["state"] == "failed"


def test_an_unused_slot_asks_nothing(pages: Pages) -> None:
    assert pages.call(pages.module("workbench").explain, None, {"slot": 3}) == (no_update, no_update)
    assert not pages.wire.asked


def test_a_form_appears_per_method_and_keeps_what_was_typed(pages: Pages) -> None:
    ids = [{"type": "param", "scope": "saliency", "name": "smooth"}]
    forms, usual = pages.call(pages.module("workbench").choose_methods, ["saliency", "occlusion"], [9], ids, [], [])
    assert len(forms) == 2 and '"value": 9' in flat(forms[0])
    assert usual["saliency"] == {"smooth": 1, "absolute": True} and usual["occlusion"]["baseline"] == "grey"


def test_another_model_lets_go_of_methods_that_do_not_fit(pages: Pages) -> None:
    choose = pages.module("workbench").choose_model
    *_, chosen, takes, _ = pages.call(choose, "net", ["saliency", "grad-cam"])
    assert chosen == ["saliency"] and takes == "image"
    *_, chosen, _, _ = pages.call(choose, "net", ["grad-cam"])
    assert chosen == ["saliency"], "the first that fits, where none of those does"


def test_the_layout_takes_up_a_running_job_from_the_address(pages: Pages) -> None:
    one = stored(pages, "occlusion")
    page = pages.call(
        pages.module("workbench").layout.__wrapped__,
        model="net",
        input=one.input,
        explainers="occlusion",
        results=one.id,
    )
    assert "2 before it in the queue" in flat(page) and one.id in flat(page)
    assert "a layer with a grid of features" in flat(page)  # why Grad-CAM cannot be chosen


# --- explanation


def test_a_finished_record_shows_picture_words_trust_and_provenance(pages: Pages) -> None:
    one = stored(pages)
    said = flat(pages.call(pages.module("explanation").layout.__wrapped__, id=one.id))
    for wanted in (
        "Why “guenon”?",
        "/render.png",
        "The face carries 64 %",
        "being measured",
        "How it misleads",
        "9f3c9f3c",
        "BibTeX",
        "rather than",
    ):
        assert wanted in said, wanted


def test_a_record_without_its_model_loses_only_the_choice_of_classes(pages: Pages) -> None:
    one = pages.wire.put(stored(pages).model_copy(update={"model": "gone"}))
    said = flat(pages.call(pages.module("explanation").layout.__wrapped__, id=one.id))
    assert "/render.png" in said and "ex-minus" not in said


def test_arriving_draws_the_body_once_and_later_only_the_trust(pages: Pages) -> None:
    page, one = pages.module("explanation"), stored(pages, "occlusion")
    waiting = {"state": "queued", "trust": "pending", "job": one.job}
    assert "before it in the queue" in flat(pages.call(page.arrive, None, 1, one.id, waiting)[1])
    pages.wire.advance(one.job or "", state="succeeded")
    _, body, state = pages.call(page.arrive, None, 1, one.id, waiting)
    assert "/render.png" in flat(body) and state["state"] == "succeeded"
    pages.wire.trust(one.id, faithfulness=-0.1, above_floor=False)
    _, body, state = pages.call(page.arrive, None, 2, one.id, state)
    assert body is no_update and "do not read it" in flat(pages.set("ex-trust"))


def test_hiding_a_part_keeps_what_was_hidden_before(pages: Pages) -> None:
    one = stored(pages, edits=[{"mask_region": [0, 0, 9, 9]}, {"set_target": {"class": 0}}])
    pages.call(pages.module("explanation").hide, 1, one.id, 20, 30, 10, 50)
    new = pages.wire.records[one.id + "i"]
    assert new.edits == [{"mask_region": [0, 0, 9, 9]}, {"mask_region": [10, 30, 20, 50]}]
    assert pages.set("_pages_location")["href"].endswith(f"/e/{new.id}")
    said = flat(pages.call(pages.module("explanation").layout.__wrapped__, id=new.id))
    assert "was 95.2 %" in said and "hidden from the model" in said and "Open the original" in said


def test_hiding_without_a_rectangle_says_what_to_do(pages: Pages) -> None:
    said = flat(pages.call(pages.module("explanation").hide, 1, stored(pages).id, None, None, 5, 5))
    assert "Draw it on the picture" in said


def test_rather_than_another_class_is_a_new_explanation(pages: Pages) -> None:
    one = stored(pages)
    pages.call(pages.module("explanation").rather_than, "2", one.id)
    assert pages.wire.asked[-1]["target"] == {"minus": [0, 2]}
    assert pages.set("_pages_location")["href"] != f"/e/{one.id}"
    before = len(pages.wire.asked)
    pages.call(pages.module("explanation").rather_than, None, one.id)
    assert len(pages.wire.asked) == before


def test_another_class_is_shown_live_from_the_stored_scores(pages: Pages) -> None:
    one = stored(pages, "patches")
    said = flat(pages.call(pages.module("explanation").live, {"class": "2", "seq": 5}, one.id, "me"))
    assert "Evidence for titi." in said and "data:image/png;base64," in said


def test_recomputing_says_how_the_numbers_compare(pages: Pages) -> None:
    one = pages.wire.put(stored(pages).model_copy(update={"verified": wire.Verified(equal=True, largest_difference=0)}))
    said, again, idle = pages.call(pages.module("explanation").recompute, 1, 0, None, one.id)
    assert "equal, bit for bit" in flat(said) and again is None and idle is True


def test_a_link_is_made_with_its_days_and_shown_once(pages: Pages) -> None:
    one = stored(pages)
    said = flat(pages.call(pages.module("explanation").share, 1, 7, one.id, []))
    assert "http://127.0.0.1/s/tok" in said and "Only you can open it" in said
    share = pages.wire.shares["s0"]
    assert share.explanations == [one.id] and 6.9 < (share.expires - share.created) / 86400 < 7.1


def test_deleting_asks_first_then_goes_to_the_gallery(pages: Pages) -> None:
    page, one = pages.module("explanation"), stored(pages)
    pages.call(page.share, 1, 7, one.id, [])
    opened, said = pages.call(page.ask_delete, 1, one.id)
    assert opened is True and "revoked" in flat(said) and one.id in pages.wire.records
    pages.call(page.delete, None, one.id)
    assert one.id in pages.wire.records
    pages.call(page.delete, 1, one.id)
    assert one.id not in pages.wire.records and pages.set("_pages_location") == {"href": "/"}


def test_title_tags_and_note_are_kept(pages: Pages) -> None:
    one = stored(pages)
    assert pages.call(pages.module("explanation").save, 1, one.id, "Mine", ["a"], "a note") == "Mine"
    kept = pages.wire.records[one.id]
    assert (kept.title, kept.tags, kept.note) == ("Mine", ["a"], "a note")
