"""Trials: an intervention on a whole sweep equals the live edit of each of its pictures; what is refused; what survives."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, png, settings, started
from fastapi.testclient import TestClient
from sweeps_rig import items as sweep_items, over

import fanlight_models
from fanlight.app import create
from fanlight.explainers.registry import registry
from fanlight_models.worlds.fieldguide import draw, split
from support.prototypes import write

SCBM = "scbm-field-guide"
BUNDLE = Path(fanlight_models.__file__).parent / "bundles" / SCBM
COUNT = 18
RULE = [{"set_concept": {"concept": "bill shape::hooked", "value": "yes"}}]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server with a concept bottleneck, a prototype classifier, and birds in folders by species."""
    folder = tmp_path_factory.mktemp("trials")
    for n, scene in enumerate(split("test", COUNT)):
        place = folder / "birds" / scene.name.replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:03}.png").write_bytes(png(draw(scene, 112).image))
    given = settings(folder, datasets=f"birds={folder / 'birds'}", trust="request")
    models = f"{given.models},{BUNDLE},{write(folder / 'small')}"
    given = given.model_copy(update={"models": models})
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        end = time.monotonic() + 30
        while "birds" not in [d["id"] for d in api.call("GET", "/datasets").json()]:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield api


def sweep(api: Api, model: str, explainer: str, seed: int = 0, **source: Any) -> dict[str, Any]:
    body = {"model": model, "explainer": explainer, "seed": seed, "source": {"dataset": "birds", **source}}
    answer = api.call("POST", "/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    return over(api, answer.json()["id"])


@pytest.fixture(scope="module")
def swept(api: Api) -> str:
    found = sweep(api, SCBM, "scbm")
    assert found["counts"]["succeeded"] == COUNT, found
    return str(found["id"])


def ask(api: Api, swept: str, edits: list[dict[str, Any]], **where: Any) -> Any:
    return api.call("POST", f"/sweeps/{swept}/trials", json={"edits": edits, "where": where})


def ended(api: Api, name: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while True:
        found: dict[str, Any] = api.call("GET", f"/trials/{name}").json()
        if found["state"] != "running":
            return found
        assert time.monotonic() < end, found
        time.sleep(0.02)


def every(api: Api, name: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.call("GET", f"/trials/{name}/items", params={"limit": 200, **query})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


@pytest.fixture(scope="module")
def tried(api: Api, swept: str) -> dict[str, Any]:
    answer = ask(api, swept, RULE)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["total"] == COUNT and made["mine"]
    assert made["about"] == f"Bill shape hooked yes; tried on {COUNT} pictures."
    found = ended(api, made["id"])
    assert found["state"] == "done" and found["counts"]["done"] == COUNT and found["progress"] == 1
    return found


def test_each_prediction_is_that_of_the_live_edit_of_its_picture(api: Api, swept: str, tried: dict[str, Any]) -> None:
    before = {i["position"]: i for i in sweep_items(api, swept)}
    moved = 0
    for n, item in enumerate(every(api, tried["id"])):
        body = {"session": "trials", "explanation": item["explanation"], "edits": RULE, "seq": n}
        live = api.call("POST", "/live", json=body).json()["prediction"][0]
        assert (item["after"], item["after_probability"]) == (live["name"], pytest.approx(live["probability"]))
        of = before[item["position"]]
        assert (item["before"], item["label"], item["input"]) == (of["predicted"], of["label"], of["input"])
        moved += item["before"] != item["after"]
    assert moved, "a hooked bill makes another bird of some of them"


def test_the_summary_counts_what_the_items_say(api: Api, tried: dict[str, Any]) -> None:
    there = every(api, tried["id"])
    summary = api.call("GET", f"/trials/{tried['id']}/summary").json()

    def right(item: dict[str, Any], when: str) -> bool:
        return bool(item["label"].replace("_", " ") == item[when])

    assert summary["complete"] and summary["n"] == summary["labelled"] == COUNT
    for when in ("before", "after"):
        count = sum(right(i, when) for i in there)
        assert summary[when]["count"] == count and summary[when]["lo"] <= count / COUNT <= summary[when]["hi"]
    corrected = [i for i in there if not right(i, "before") and right(i, "after")]
    spoiled = [i for i in there if right(i, "before") and not right(i, "after")]
    assert (summary["corrected"], summary["spoiled"]) == (len(corrected), len(spoiled))
    assert [i["position"] for i in every(api, tried["id"], move="corrected")] == [i["position"] for i in corrected]
    assert [i["position"] for i in every(api, tried["id"], move="spoiled")] == [i["position"] for i in spoiled]
    change = summary["change"]
    assert change["value"] == pytest.approx((len(corrected) - len(spoiled)) / COUNT)
    assert change["lo"] < change["value"] < change["hi"]
    assert sum(c["gained"] for c in summary["classes"]) == len(corrected)
    assert sum(c["lost"] for c in summary["classes"]) == len(spoiled)
    assert sum(c["predicted_after"] - c["predicted_before"] for c in summary["classes"]) == 0
    assert summary["moved"] == len(every(api, tried["id"], move="corrected,spoiled,other"))


def test_the_csv_has_every_picture(api: Api, tried: dict[str, Any]) -> None:
    answer = api.call("GET", f"/trials/{tried['id']}/export.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [r["after"] for r in rows] == [i["after"] for i in every(api, tried["id"])] and len(rows) == COUNT
    assert "attachment" in answer.headers["content-disposition"]


def test_it_is_listed_and_no_new_record_was_made(api: Api, swept: str, tried: dict[str, Any]) -> None:
    assert tried["id"] in [t["id"] for t in api.call("GET", f"/sweeps/{swept}/trials").json()]
    assert api.call("GET", f"/explanations?model={SCBM}").json()["total"] == COUNT


def test_it_can_be_narrowed(api: Api, swept: str, tried: dict[str, Any]) -> None:
    one = next(i for i in every(api, tried["id"]) if i["label"].replace("_", " ") == i["before"])
    made = ask(api, swept, RULE, label=one["label"].replace("_", " ").upper()).json()
    assert made["total"] == sum(i["label"] == one["label"] for i in every(api, tried["id"]))
    made = ask(api, swept, RULE, predicted=one["before"], outcome="right").json()
    fits = [i for i in sweep_items(api, swept) if i["predicted"] == one["before"] and i["outcome"] == "right"]
    assert made["total"] == len(fits) > 0 and "that the model has right" in made["about"]
    nothing = ask(api, swept, RULE, label="penguin")
    assert nothing.status_code == 422 and nothing.json()["error"]["code"] == "nothing_to_try"


def test_several_answers_are_one_rule_and_the_order_does_not_matter(api: Api, swept: str) -> None:
    more = [{"set_concept": {"concept": "crest::long", "value": 0.3}}, *RULE]
    first, second = (ask(api, swept, e).json() for e in (more, more[::-1]))
    assert "crest long 0.3" in first["about"].casefold() and "hooked yes" in first["about"].casefold()
    assert [i["after"] for i in every(api, ended(api, first["id"])["id"])] == [
        i["after"] for i in every(api, ended(api, second["id"])["id"])
    ]


def test_prototypes_are_muted_everywhere(api: Api) -> None:
    found = sweep(api, "small", "protovit", first=4)
    made = ask(api, found["id"], [{"mute_prototype": 2}, {"gate_part": [0, 1]}]).json()
    assert made["about"] == "Part 2 of prototype 0 left out, prototype 2 muted; tried on 4 pictures."
    assert ended(api, made["id"])["counts"]["done"] == 4
    for n, item in enumerate(every(api, made["id"])):
        edits = [{"mute_prototype": 2}, {"gate_part": [0, 1]}]
        body = {"session": "mute", "explanation": item["explanation"], "edits": edits, "seq": n}
        assert item["after"] == api.call("POST", "/live", json=body).json()["prediction"][0]["name"]
    region = ask(api, found["id"], [{"exclude_region": [0, 0, 12, 12]}])
    assert region.status_code == 422 and set(region.json()["error"]["allowed"]) == {
        "mute_prototype",
        "gate_part",
        "remove_part",
    }
    summary = api.call("GET", f"/trials/{made['id']}/summary").json()
    assert summary["labelled"] == 4, "folders are labels, though no class is called so"


def test_what_makes_no_sense_is_a_sentence(api: Api, swept: str) -> None:
    both = [*RULE, {"set_concept": {"concept": "bill shape::conical", "value": "yes"}}]
    for edits, code in (
        ([{"set_concept": {"concept": "beak", "value": "yes"}}], "invalid_edit"),
        ([{"mask_region": [0, 0, 5, 5]}], "invalid_edit"),
        ([{"mute_prototype": 1}], "invalid_edit"),
        (both, "invalid_edit"),
        ([], "invalid_request"),
    ):
        answer = ask(api, swept, edits)
        assert answer.status_code == 422 and answer.json()["error"]["code"] == code, answer.text
    other = sweep(api, SCBM, "saliency", first=1)
    answer = ask(api, other["id"], RULE)
    assert answer.status_code == 409 and answer.json()["error"]["code"] == "not_editable"
    assert ask(api, "nothing", RULE).status_code == 404
    assert api.call("GET", "/trials/nothing/summary").status_code == 404
    assert api.call("GET", f"/sweeps/{swept}/trials?move=up").status_code == 422


def test_a_deleted_picture_is_left_out_with_its_reason_and_trials_go_with_their_sweep(api: Api) -> None:
    found = sweep(api, SCBM, "scbm", first=3, seed=1)  # records of its own
    gone = sweep_items(api, found["id"])[1]["explanation"]
    waits = api.http.app.state.context.models.ready  # type: ignore[attr-defined]
    waits.clear()  # as while models are being loaded
    made = ask(api, found["id"], RULE).json()
    assert api.call("DELETE", f"/trials/{made['id']}").status_code == 409
    assert api.call("DELETE", f"/explanations/{gone}").status_code == 200
    waits.set()
    over = ended(api, made["id"])
    assert over["counts"]["failed"] == 1 and over["counts"]["done"] == 2
    bad = every(api, made["id"], state="failed")
    assert [i["explanation"] for i in bad] == [gone] and bad[0]["reason"] == "The explanation was deleted."
    assert api.call("DELETE", f"/sweeps/{found['id']}").status_code == 200
    assert api.call("GET", f"/trials/{made['id']}").status_code == 404


def test_a_cancelled_one_keeps_what_is_finished(api: Api, swept: str) -> None:
    waits = api.http.app.state.context.models.ready  # type: ignore[attr-defined]
    waits.clear()
    made = ask(api, swept, RULE).json()
    assert made["state"] == "running"
    over = api.call("POST", f"/trials/{made['id']}/cancel").json()
    waits.set()
    assert over["state"] == "cancelled" and over["counts"]["cancelled"] == COUNT
    summary = api.call("GET", f"/trials/{made['id']}/summary").json()
    assert summary["n"] == 0 and summary["change"]["value"] is None and not summary["complete"]
    assert api.call("DELETE", f"/trials/{made['id']}").status_code == 200
    assert api.call("GET", f"/trials/{made['id']}").status_code == 404
    log = api.call("GET", f"/audit?subject={made['id']}").json()["items"]
    assert [e["action"] for e in log] == ["trial.delete", "trial.cancel", "trial.create"]


def test_methods_offer_for_many_only_what_needs_no_model_and_can_say_it_in_words() -> None:
    """Of every method: what is `general` is one of its edits, asks no network, and has words."""
    about = {
        "concepts": ["crest", "bill"],
        "exclusive": [],
        "prototypes": 4,
        "parts": 2,
        "classes": 2,
        "grid": [4, 4],
        "box": [0, 0, 8, 8],
    }
    values = {
        "set_concept": {"concept": 1, "value": "no"},
        "mute_prototype": 3,
        "gate_part": [3, 1],
        "remove_part": [3, 1],
    }
    told = set()
    for method in registry(()).values():
        assert method.general <= set(method.edits) and not method.general & method.asks, method.name
        for kind in method.general:
            words = method.told(method.canonical([{kind: values[kind]}], about), about)
            assert "bill" in words or "3" in words
            told.add(kind)
    assert told == set(values)
