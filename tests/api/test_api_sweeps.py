"""Sweeps: known answers, reuse, pause and cancel, two at once, what cannot be read, and what cannot be asked."""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient
from sweeps_rig import MODEL, items, over, picture, planted, start, summarised

from fanlight.app import create
from fanlight.service.sweeps_run import shared
from fanlight.service.sweeps_source import MOST

HONEST, MARKED, PLAIN, BROKEN = 12, 12, 6, 2


@pytest.fixture
def swept(tmp_path: Path) -> Iterator[Api]:
    yield from serving(tmp_path)


@pytest.fixture
def swept_on_postgres(tmp_path: Path, postgres_url: str) -> Iterator[Api]:
    yield from serving(tmp_path, database_url=postgres_url)


def serving(tmp_path: Path, **changes: Any) -> Iterator[Api]:
    """A server with the model that has learned a shortcut, and pictures in which it shows."""
    model = tmp_path / "shortcut.py"
    model.write_text(MODEL)
    folder = planted(tmp_path / "pictures", MARKED, HONEST, PLAIN, BROKEN)
    given = settings(tmp_path, models=str(model), datasets=f"birds={folder}", **changes)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        end = time.monotonic() + 30
        while "birds" not in [d["id"] for d in api.call("GET", "/datasets").json()]:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield api


def test_counts_accuracy_and_groups_are_those_that_were_planted(swept: Api) -> None:
    ident = start(swept)["id"]
    found = over(swept, ident)
    assert found["state"] == "done" and found["progress"] == 1
    assert found["counts"]["succeeded"] == HONEST + MARKED + PLAIN and found["counts"]["skipped"] == BROKEN
    assert found["total"] == HONEST + MARKED + PLAIN + BROKEN
    summary = summarised(swept, ident)
    # The mark makes a bird of what is none: all marked ones are wrong, all others right.
    there = items(swept, ident, state="succeeded")
    right = sum(i["predicted"].replace(" ", "_") == i["label"] for i in there)
    assert right == HONEST + PLAIN
    assert (summary["accuracy"]["count"], summary["accuracy"]["n"]) == (right, len(there))
    assert summary["accuracy"]["lo"] < right / len(there) < summary["accuracy"]["hi"]
    wrong = {i["explanation"] for i in there if i["outcome"] == "wrong"}
    assert set(summary["confident"]) <= wrong and len(summary["confident"]) == 8
    # Maps of the marked ones lie in the corner, of the honest ones in the middle; those of plain ones are blank.
    clusters = summary["clusters"]
    assert (clusters["k"], clusters["n"], clusters["blank"]) == (2, HONEST + MARKED, PLAIN)
    assert clusters["silhouette"] > 0.8
    name = {i["explanation"]: i["name"].split("-")[0] for i in there}
    groups = {p["cluster"] for p in summary["projection"]["points"]}
    for number in groups:
        kinds = {name[p["explanation"]] for p in summary["projection"]["points"] if p["cluster"] == number}
        assert len(kinds) == 1, "a group is of one kind"
    corner = next(c for c in clusters["items"] if name[c["members"][0]] == "marked")
    assert "upper left" in corner["where"] and corner["accuracy"]["count"] == 0
    middle = next(c for c in clusters["items"] if c is not corner)
    assert "middle" in middle["where"] and middle["accuracy"]["value"] == 1
    for one in (corner, middle):
        for what in ("picture", "map"):
            drawn = swept.http.get(one[what])
            assert drawn.status_code == 200 and drawn.content.startswith(b"\x89PNG")
    f = summary["faithful"]
    scored = [i["faithfulness"] for i in there if i["faithfulness"] is not None]
    assert f["n"] == len(scored) == sum(f["counts"]) and f["mean"] == pytest.approx(sum(scored) / len(scored))
    assert f["above"]["count"] == sum(i["above_floor"] is True for i in there)
    best = sorted(scored, reverse=True)[: len(summary["most"])]
    by_id = {i["explanation"]: i["faithfulness"] for i in there}
    assert [by_id[i] for i in summary["most"]] == best


@pytest.mark.postgres
def test_on_postgres_a_sweep_ends_with_the_same_numbers_and_views_are_kept(swept_on_postgres: Api) -> None:
    api = swept_on_postgres
    ident = start(api)["id"]
    found = over(api, ident, 120)
    assert found["counts"]["succeeded"] == HONEST + MARKED + PLAIN and found["counts"]["skipped"] == BROKEN
    summary = summarised(api, ident)
    assert summary["accuracy"]["count"] == HONEST + PLAIN and summary["clusters"]["k"] == 2
    end = time.monotonic() + 20  # a page waits for the list for a moment only
    while (listed := api.call("GET", f"/explanations?sweep={ident}").json()["total"]) < HONEST + MARKED + PLAIN:
        assert time.monotonic() < end, listed
        time.sleep(0.1)
    view = api.call("POST", "/views", json={"name": "wrong", "query": {"outcome": "wrong"}}).json()
    api.call("DELETE", f"/views/{view['id']}")
    assert api.call("POST", f"/views/{view['id']}/restore").json()["query"] == {"outcome": "wrong"}
    paused = start(api, explainer="saliency")["id"]
    assert api.call("POST", f"/sweeps/{paused}/pause").json()["state"] == "paused"
    assert api.call("POST", f"/sweeps/{paused}/cancel").json()["state"] == "cancelled"


def test_files_that_are_no_pictures_are_listed_with_their_reason_and_do_not_stop_it(swept: Api) -> None:
    ident = start(swept, source={"dataset": "birds", "label": "bird"})["id"]
    assert over(swept, ident)["state"] == "done"
    bad = items(swept, ident, state="skipped")
    assert [i["name"] for i in bad] == ["<b>broken-0.png", "<b>broken-1.png"]
    assert all("picture" in i["reason"] and i["explanation"] is None for i in bad)
    assert len(items(swept, ident, state="succeeded")) == HONEST
    page = swept.call("GET", f"/sweeps/{ident}/export.html")
    assert page.status_code == 200 and "<b>broken" not in page.text and "&lt;b&gt;broken-0.png" in page.text
    rows = list(csv.DictReader(io.StringIO(swept.call("GET", f"/sweeps/{ident}/export.csv").text)))
    assert Counter(r["state"] for r in rows) == {"succeeded": HONEST, "skipped": BROKEN}
    both = swept.call("GET", f"/sweeps/{ident}/export.json").json()
    assert [i["name"] for i in both["items"]] == [r["name"] for r in rows]


def test_what_is_stored_is_reused_and_a_sweep_is_a_filter_of_the_gallery(swept: Api) -> None:
    by_hand = swept.upload(picture(False, True, 0))["id"]
    made = swept.explain(model="shortcut", explainer="input-x-gradient", input=by_hand)
    first = over(swept, start(swept, source={"dataset": "birds", "q": "honest"})["id"])
    assert first["counts"]["succeeded"] == HONEST and first["reused"] == 1
    assert made["id"] in [i["explanation"] for i in items(swept, first["id"]) if i["reused"]]
    again = over(swept, start(swept, source={"dataset": "birds", "q": "honest"}, name="again")["id"])
    assert again["reused"] == HONEST and again["name"] == "again"
    ids = [{i["explanation"] for i in items(swept, s["id"])} for s in (first, again)]
    assert ids[0] == ids[1]
    for s in (first, again):
        page = swept.call("GET", f"/explanations?sweep={s['id']}&limit=200").json()
        assert page["total"] == HONEST and {e["id"] for e in page["items"]} == ids[0]
    assert swept.call("GET", "/explanations?sweep=nothing").json()["total"] == 0
    assert swept.call("GET", "/explanations?limit=200").json()["total"] == HONEST


def test_the_pictures_of_a_filtered_gallery_are_swept_each_once(swept: Api) -> None:
    over(swept, start(swept)["id"])
    wrong = swept.call("GET", "/explanations?outcome=wrong&limit=200").json()
    assert wrong["total"] == MARKED
    found = over(swept, start(swept, explainer="saliency", source={"gallery": {"outcome": "wrong"}})["id"])
    there = items(swept, found["id"])
    assert {i["input"] for i in there} == {e["input"] for e in wrong["items"]} and len(there) == MARKED
    assert "outcome wrong" in found["about"]
    part = over(swept, start(swept, explainer="saliency", source={"gallery": {"class": "bird"}, "first": 3})["id"])
    newest = swept.call("GET", "/explanations?class=bird&limit=200").json()["items"]
    inputs = list(dict.fromkeys(e["input"] for e in newest))
    assert len(items(swept, part["id"])) == 3 and {i["input"] for i in items(swept, part["id"])} <= set(inputs)


def test_the_first_and_a_random_sample_are_what_their_names_say(swept: Api) -> None:
    first = over(swept, start(swept, source={"dataset": "birds", "first": 5})["id"])
    order = [s["name"] for s in swept.call("GET", "/datasets/birds/samples?limit=200").json()["items"]]
    assert [i["name"] for i in items(swept, first["id"])] == order[:5]
    drawn = [
        [
            i["name"]
            for i in items(swept, start(swept, source={"dataset": "birds", "sample": 7, "sample_seed": s})["id"])
        ]
        for s in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2] and len(set(drawn[0])) == 7
    assert drawn[0] == sorted(drawn[0], key=order.index), "in the order of the data set"


def test_the_class_of_the_label_or_one_class_for_all_can_be_explained(swept: Api, tmp_path: Path) -> None:
    by_label = over(swept, start(swept, rule="label", source={"dataset": "birds"})["id"])
    for i in items(swept, by_label["id"], state="succeeded"):
        record = swept.call("GET", f"/explanations/{i['explanation']}").json()
        assert record["target"] == {"class": 0 if i["label"] == "bird" else 1}
    fixed = over(swept, start(swept, rule="class", target="no bird", source={"dataset": "birds", "first": 4})["id"])
    for i in items(swept, fixed["id"]):
        assert swept.call("GET", f"/explanations/{i['explanation']}").json()["target"] == {"class": 1}


def test_a_label_that_is_no_class_is_skipped_with_its_reason(swept: Api) -> None:
    loose = swept.upload(picture(True, True, 7))["id"]
    swept.explain(model="shortcut", explainer="input-x-gradient", input=loose)
    found = over(swept, start(swept, rule="label", source={"gallery": {"model": "shortcut"}})["id"])
    assert found["counts"]["skipped"] == 1 and items(swept, found["id"])[0]["reason"] == "It has no label."


def test_pause_begins_nothing_further_and_resume_goes_on(swept: Api, tmp_path: Path) -> None:
    slow = tmp_path / "shortcut.py.slow"
    slow.touch()
    ident = start(swept, explainer="saliency")["id"]
    end = time.monotonic() + 30
    while not swept.call("GET", f"/sweeps/{ident}").json()["counts"]["submitted"]:
        assert time.monotonic() < end
        time.sleep(0.02)
    paused = swept.call("POST", f"/sweeps/{ident}/pause").json()
    assert paused["state"] == "paused" and paused["rate"] is None
    slow.unlink()
    while sum((found := swept.call("GET", f"/sweeps/{ident}").json())["counts"][s] for s in ("submitted", "measuring")):
        assert time.monotonic() < end + 60
        time.sleep(0.05)
    waiting = found["counts"]["waiting"]
    assert waiting > 0 and found["state"] == "paused"
    time.sleep(0.6)
    assert swept.call("GET", f"/sweeps/{ident}").json()["counts"]["waiting"] == waiting
    assert swept.call("POST", f"/sweeps/{ident}/pause").json()["state"] == "paused", "twice is no error"
    assert swept.call("POST", f"/sweeps/{ident}/resume").json()["state"] == "running"
    assert over(swept, ident)["counts"]["succeeded"] == HONEST + MARKED + PLAIN


def test_cancel_stops_what_has_begun_and_keeps_what_is_finished(swept: Api, tmp_path: Path) -> None:
    over(swept, start(swept, explainer="saliency", source={"dataset": "birds", "first": 3})["id"])
    (tmp_path / "shortcut.py.slow").touch()
    ident = start(swept, explainer="saliency")["id"]
    end = time.monotonic() + 30
    while swept.call("GET", f"/sweeps/{ident}").json()["counts"]["submitted"] < 5:
        assert time.monotonic() < end
        time.sleep(0.02)
    found = swept.call("POST", f"/sweeps/{ident}/cancel").json()
    (tmp_path / "shortcut.py.slow").unlink()
    assert found["state"] == "cancelled" and found["counts"]["succeeded"] >= 3
    assert not sum(found["counts"][s] for s in ("waiting", "submitted", "measuring"))
    while swept.call("GET", "/jobs?state=queued,running").json()["total"]:
        assert time.monotonic() < end + 30
        time.sleep(0.05)
    assert swept.call("POST", f"/sweeps/{ident}/resume").json()["error"]["code"] == "sweep_over"
    assert swept.call("DELETE", f"/sweeps/{ident}").status_code == 200
    assert swept.call("GET", f"/sweeps/{ident}").status_code == 404
    assert swept.call("GET", "/explanations?limit=1").json()["total"] >= 3, "explanations stay"


def test_two_sweeps_at_once_share_the_room_and_a_picture_by_hand_goes_ahead(swept: Api, tmp_path: Path) -> None:
    (tmp_path / "shortcut.py.slow").touch()
    two = [start(swept, explainer=e, source={"dataset": "birds"})["id"] for e in ("saliency", "smooth-grad")]
    end = time.monotonic() + 60
    while not all(swept.call("GET", f"/sweeps/{i}").json()["counts"]["submitted"] for i in two):
        assert time.monotonic() < end
        time.sleep(0.05)
    open_ = swept.call("GET", "/jobs?state=queued,running&limit=200").json()
    assert open_["total"] <= 32, "a bounded window"
    mine = swept.upload(picture(True, True, 99))["id"]
    record = swept.explain(model="shortcut", explainer="input-x-gradient", input=mine)
    left = [swept.call("GET", f"/sweeps/{i}").json() for i in two]
    (tmp_path / "shortcut.py.slow").unlink()
    assert record["state"] == "succeeded" and all(s["state"] == "running" for s in left)
    done = [over(swept, i, 200) for i in two]
    assert all(d["counts"]["succeeded"] == HONEST + MARKED + PLAIN for d in done)


def test_workspaces_share_the_room_for_sweeps_and_then_their_sweeps_do() -> None:
    assert shared([("a", "w")]) == {"a": 16}
    assert shared([("a", "w"), ("b", "w")]) == {"a": 16, "b": 16}
    assert shared([*((f"a{n}", "many") for n in range(8)), ("b", "few")]) == {**{f"a{n}": 2 for n in range(8)}, "b": 16}
    assert set(shared([(str(n), "w") for n in range(100)]).values()) == {1}, "each has something waiting"


def refused(api: Api, **changes: Any) -> dict[str, Any]:
    body = {"model": "shortcut", "explainer": "saliency", "source": {"dataset": "birds"}, **changes}
    answer = api.call("POST", "/sweeps", json=body)
    assert 400 <= answer.status_code < 500, answer.text
    return dict(answer.json()["error"])


def test_what_cannot_be_swept_is_refused_with_a_sentence(swept: Api) -> None:
    said = refused(swept, source={"dataset": "birdz"})
    assert said["code"] == "unknown_dataset" and "Did you mean birds?" in said["message"]
    assert refused(swept, model="nothing")["code"] == "unknown_model"
    assert refused(swept, explainer="nothing")["code"] == "unknown_explainer"
    unfit = refused(swept, explainer="attention-rollout")
    assert unfit["code"] == "not_available" and "saliency" in unfit["allowed"]
    assert refused(swept, explainer="occlusion", params={"window": -1})["code"] == "invalid_params"
    total = HONEST + MARKED + PLAIN
    for amount in ("first", "sample"):
        large = refused(swept, source={"dataset": "birds", amount: 1_000_000_000})
        assert large["code"] == "too_many_items" and large["allowed"] == [1, min(total, MOST)]
        assert f"Only {total} pictures fit" in large["message"]
        assert refused(swept, source={"dataset": "birds", amount: 0})["code"] == "invalid_request"
        assert refused(swept, source={"dataset": "birds", amount: 2**70})["code"]
    assert refused(swept, source={"dataset": "birds", "q": "zebra"})["code"] == "nothing_to_sweep"
    assert refused(swept, source={"dataset": "birds", "first": 1, "sample": 1})["code"] == "invalid_request"
    assert refused(swept, source={})["code"] == "invalid_request"
    assert refused(swept, source={"dataset": "birds", "gallery": {}})["code"] == "invalid_request"
    assert refused(swept, source={"gallery": {"nonsense": "x"}})["code"] == "invalid_request"
    assert refused(swept, source={"gallery": {"outcome": "maybe"}})["code"] == "invalid_filter"
    assert refused(swept, source={"dataset": "birds", "page": 3})["code"] == "invalid_request"
    assert refused(swept, rule="class")["code"] == "invalid_request"
    assert refused(swept, rule="class", target="zebra")["code"] == "unknown_target"
    assert refused(swept, rule="label", target=0)["code"] == "invalid_request"
    assert swept.call("GET", "/sweeps").json()["total"] == 0
    assert swept.call("GET", "/sweeps/nothing/summary").status_code == 404
    assert swept.call("GET", "/sweeps/nothing/export.pdf").status_code in (404, 422)
    ident = start(swept, name="<script>alert(1)</script>", source={"dataset": "birds", "first": 1})["id"]
    assert swept.call("GET", f"/sweeps/{ident}/items?state=asleep").json()["error"]["code"] == "invalid_state"
    assert swept.call("GET", f"/sweeps/{ident}/items?limit=0").json()["error"]["code"] == "invalid_limit"
    assert swept.call("GET", f"/sweeps/{ident}/clusters/9/map.png").status_code == 404
    over(swept, ident)
    assert "<script>alert" not in swept.call("GET", f"/sweeps/{ident}/export.html").text


def test_a_sweep_is_ended_by_who_asked_for_it_alone(swept: Api) -> None:
    door = swept.http.get("/", params={"token": TOKEN}, headers={"authorization": ""}, follow_redirects=False)
    cookie = door.headers["set-cookie"].split(";")[0]
    ident = start(swept)["id"]
    other = {"cookie": cookie, "authorization": "", "sec-fetch-site": "same-origin"}
    seen = swept.call("GET", f"/sweeps/{ident}", headers=other).json()
    assert seen["mine"] is False
    for verb in ("pause", "cancel"):
        answer = swept.call("POST", f"/sweeps/{ident}/{verb}", headers=other)
        assert answer.status_code == 403 and answer.json()["error"]["code"] == "not_yours"
    over(swept, ident)


def test_an_explanation_that_is_deleted_leaves_the_numbers(swept: Api) -> None:
    ident = start(swept)["id"]
    over(swept, ident)
    before = summarised(swept, ident)
    swept.call("DELETE", f"/explanations/{before['most'][0]}")
    after = summarised(swept, ident)
    assert after["n"] == before["n"] - 1 and after["content"] != before["content"]
    assert before["most"][0] not in after["most"]
