"""A concept bottleneck through the API: explained by concepts, answered live, saved, replayed, shared and exported."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, png, settings, started
from fastapi.testclient import TestClient
from PIL import Image

import fanlight_models
from fanlight.app import create
from fanlight.artifact import Artifact
from fanlight_models.worlds.fieldguide import draw, split

MODEL = "scbm-field-guide"
BUNDLE = Path(fanlight_models.__file__).parent / "bundles" / MODEL


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("concepts"))
    given = given.model_copy(update={"models": f"{given.models},{BUNDLE}"})
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        yield Api(started(http))


@pytest.fixture(scope="module")
def bird(api: Api) -> str:
    scene = next(iter(split("test", 1)))
    return str(api.upload(png(draw(scene, 160).image), "bird.png")["id"])


@pytest.fixture(scope="module")
def record(api: Api, bird: str) -> dict[str, Any]:
    return api.explain(model=MODEL, input=bird, explainer="scbm")


def answered(concept: Any, value: Any) -> dict[str, Any]:
    return {"set_concept": {"concept": concept, "value": value}}


seq = iter(range(1, 10_000))


def live(api: Api, ident: str, edits: list[Any], **more: Any) -> Any:
    body = {"session": "tests", "explanation": ident, "edits": edits, "seq": next(seq), **more}
    return api.call("POST", "/live", json=body)


def told(api: Api, record: dict[str, Any]) -> dict[str, Any]:
    answer = api.http.get(record["artifacts"][0]["url"])
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def test_the_model_says_its_concepts_and_which_methods_fit(api: Api) -> None:
    model = api.call("GET", f"/models/{MODEL}").json()
    assert model["task"] == "concept-bottleneck" and "bill shape::hooked" in model["concepts"]
    able = {e["name"] for e in model["explainers"] if e["available"]}
    assert {"scbm", "saliency", "occlusion"} <= able
    tiny = api.call("GET", "/models/tiny").json()["explainers"]
    reason = next(e["reason"] for e in tiny if e["name"] == "scbm")
    assert "concept-bottleneck" in reason
    info = next(e for e in api.call("GET", "/explainers").json() if e["name"] == "scbm")
    assert "set_concept" in info["edits"] and info["family"] == "concepts"


def test_the_record_holds_what_was_found(api: Api, record: dict[str, Any]) -> None:
    assert record["state"] == "succeeded" and record["artifacts"][0]["kind"] == "concepts"
    found = told(api, record)
    detail = found["detail"]
    assert len(detail["p"]) == 79 and detail["answers"] == [] and detail["was"] == detail["p"]
    best = record["prediction"][0]
    shown = next(c for c in detail["classes"] if c["index"] == best["index"])
    assert shown["p"] == pytest.approx(best["probability"], abs=1e-5), (
        "the prediction is the model's own, not a softmax"
    )
    assert record["target"] == {"class": best["index"]}
    assert "speak" in record["summary"] and record["trust"]["state"] == "unavailable"


def test_an_answer_moves_other_concepts_and_the_class_at_once(api: Api, record: dict[str, Any]) -> None:
    answer = live(api, record["id"], [answered("bill shape::hooked", "yes")])
    assert answer.status_code == 200, answer.text
    panel = answer.json()
    place = told(api, record)["meta"]["concepts"].index("bill shape::hooked")
    detail = panel["detail"]
    assert detail["p"][place] == 1 and detail["answers"] == [[place, "yes"]]
    moved = [k for k in range(79) if k != place and abs(detail["p"][k] - detail["was"][k]) > 0.05]
    assert moved and panel["summary"].startswith("Answered: bill shape hooked yes.")
    assert panel["prediction"][0]["probability"] == max(p["probability"] for p in panel["prediction"])


def test_a_question_is_suggested(api: Api, record: dict[str, Any]) -> None:
    panel = live(api, record["id"], [answered(0, "no")], suggest=True).json()
    questions = panel["suggestion"]["questions"]
    assert len(questions) == 3 and panel["suggestion"]["of"] == 20
    assert questions[0]["gain"] >= questions[1]["gain"] >= questions[2]["gain"]


@pytest.fixture(scope="module")
def saved(api: Api, record: dict[str, Any]) -> dict[str, Any]:
    edits = [answered("bill shape hooked", "yes"), answered("crest::long", 0.3), answered("crest::none", "unknown")]
    answer = api.call(
        "POST",
        "/interventions?wait=10",
        json={"explanation": record["id"], "edits": edits, "note": "seen through a glass"},
    )
    assert answer.status_code == 201, answer.text
    return api.finished(answer.json()["id"])


def test_what_is_saved_is_what_was_shown(api: Api, record: dict[str, Any], saved: dict[str, Any]) -> None:
    assert saved["parent"] == record["id"] and saved["state"] == "succeeded"
    own = [e for e in saved["edits"] if "set_concept" in e]
    assert [e["set_concept"]["value"] for e in own] == ["yes", 0.3, "unknown"]
    shown = live(api, record["id"], own).json()
    assert told(api, saved)["detail"] == shown["detail"] and saved["summary"] == shown["summary"]
    assert saved["prediction"] == shown["prediction"]


def test_it_replays_to_the_same_numbers(api: Api, saved: dict[str, Any]) -> None:
    again = api.call("POST", f"/explanations/{saved['id']}/recompute?wait=10")
    assert again.status_code in (200, 202), again.text
    found = api.finished(again.json()["id"])
    assert found["verified"] == {"equal": True, "largest_difference": 0.0}


def test_the_same_answers_are_the_same_record(api: Api, record: dict[str, Any], saved: dict[str, Any]) -> None:
    names = told(api, record)["meta"]["concepts"]
    edits = [
        answered(names.index("bill shape::hooked"), 1),
        answered("crest::long", 0.3),
        answered("Crest None", "unknown"),
    ]
    answer = api.call("POST", "/interventions?wait=10", json={"explanation": record["id"], "edits": edits})
    alive = {saved["id"], api.call("GET", f"/explanations/{saved['id']}").json().get("superseded_by")}
    assert answer.json()["id"] in alive


def test_a_saved_one_can_be_changed_further(api: Api, record: dict[str, Any], saved: dict[str, Any]) -> None:
    """From the model's own reading again, whatever was answered before."""
    edits = [answered("back::blue", "no")]
    assert live(api, saved["id"], edits).json()["detail"] == live(api, record["id"], edits).json()["detail"]
    assert live(api, saved["id"], []).json()["detail"]["p"] == told(api, record)["detail"]["p"]


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ([answered("crest::none", "yes"), answered("crest::long", "yes")], "exclude each other"),
        ([answered("beard", "yes")], "No concept is called"),
        ([answered(0, 1.5)], "between 0 and 1"),
        ([answered(0, "maybe")], "no answer"),
        ([{"set_concept": {"concept": 0}}], "names a concept and a value"),
        ([{"mute_prototype": 3}], "not known"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence_live_and_saved(
    api: Api, record: dict[str, Any], edits: Any, says: str
) -> None:
    for answer in (
        live(api, record["id"], edits),
        api.call("POST", "/interventions", json={"explanation": record["id"], "edits": edits}),
    ):
        assert answer.status_code == 422, answer.text
        assert says in answer.json()["error"]["message"] and answer.json()["error"]["code"] == "invalid_edit"
    assert told(api, record)["detail"]["answers"] == [], "nothing is lost"


def test_a_concept_has_maps_with_trust(api: Api, bird: str) -> None:
    made = api.explain(model=MODEL, input=bird, explainer="saliency", target={"concept": "bill shape::hooked"})
    assert made["state"] == "succeeded", made
    assert made["target_name"] == "bill shape hooked" and made["artifacts"][0]["kind"] == "image-map"
    assert api.trusted(made["id"])["state"] in ("succeeded", "unavailable")
    other = api.explain(model=MODEL, input=bird, explainer="saliency", target={"concept": "back::blue"})
    assert other["artifacts"][0]["digest"] != made["artifacts"][0]["digest"]


def test_concepts_are_no_target_of_prediction_by_concepts(api: Api, bird: str) -> None:
    refused = api.ask(model=MODEL, input=bird, explainer="scbm", target={"concept": 3})
    assert refused.status_code == 422 and "explains classes" in refused.json()["error"]["message"]
    refused = api.ask(model="tiny", input=bird, explainer="saliency", target={"concept": 3})
    assert refused.status_code == 422 and "no concepts" in refused.json()["error"]["message"]


def test_one_class_rather_than_another(api: Api, bird: str, record: dict[str, Any]) -> None:
    first, second = (p["index"] for p in record["prediction"][:2])
    made = api.explain(model=MODEL, input=bird, explainer="scbm", target={"minus": [first, second]})
    one = Artifact.from_bytes(api.http.get(made["artifacts"][0]["url"] + "/raw").content).arrays
    weight = one["weights"][first].astype(float) - one["weights"][second]
    np.testing.assert_allclose(told(api, made)["detail"]["share"], weight * (one["after"][0] - one["base"]), atol=1e-5)


def test_cards_exports_and_the_share_page_work_without_a_map(api: Api, saved: dict[str, Any]) -> None:
    for path in ("card.png", "overlay.png", "preview.png"):
        answer = api.call("GET", f"/explanations/{saved['id']}/{path}")
        assert answer.status_code == 200, (path, answer.text)
        assert Image.open(io.BytesIO(answer.content)).width > 100
    for form in ("html", "pdf", "svg", "png", "csv", "safetensors", "bib", "json"):
        answer = api.call("GET", f"/explanations/{saved['id']}/export.{form}")
        assert answer.status_code == 200, (form, answer.text)
    rows = api.call("GET", f"/explanations/{saved['id']}/export.csv").text.splitlines()
    assert len(rows) == 80 and rows[1].startswith("bill shape hooked,1.0,") and ",yes," in rows[1]
    link = api.call("POST", "/shares", json={"explanations": [saved["id"]]}).json()
    page = api.http.get(f"/s/{link['token']}", headers={"Authorization": ""})
    assert page.status_code == 200 and "Answered: bill shape hooked yes" in page.text and "crest long 0.30" in page.text
    assert api.http.get(f"/s/{link['token']}/0/overlay.png").status_code == 200
    assert "seen through a glass" not in page.text


def test_of_a_session_only_the_latest_is_answered(api: Api, record: dict[str, Any]) -> None:
    body = {"session": "drag", "explanation": record["id"], "edits": []}
    assert api.call("POST", "/live", json={**body, "seq": 5}).status_code == 200
    late = api.call("POST", "/live", json={**body, "seq": 4})
    assert late.status_code == 409 and late.json()["error"]["code"] == "superseded"
