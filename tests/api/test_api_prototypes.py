"""Prototypes through the whole server: explained, changed live, saved, replayed, shared, exported; its sources may go."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from support.prototypes import write


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("prototypes")
    given = settings(folder, models=str(write(folder / "small")))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        yield Api(started(http))


MODEL = "small"


@pytest.fixture(scope="module")
def record(api: Api) -> dict[str, Any]:
    found = api.explain(model=MODEL, explainer="protovit", input=api.upload(noise(1))["id"])
    assert found["state"] == "succeeded", found["error"]
    return found


def told(api: Api, record: dict[str, Any]) -> dict[str, Any]:
    answer = api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}")
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def live(api: Api, record: dict[str, Any], seq: int, *edits: dict[str, Any], **more: Any) -> Any:
    body = {"session": "a" * 8, "explanation": record["id"], "edits": list(edits), "seq": seq, **more}
    return api.call("POST", "/live", json=body)


def test_points_on_the_wire_add_up_to_the_logit(api: Api, record: dict[str, Any]) -> None:
    detail = told(api, record)["detail"]
    logit = next(p["logit"] for p in record["prediction"] if p["index"] == record["target"]["class"])
    parts = sum(p["points"] for row in detail["rows"] for p in row["parts"])
    assert parts + detail["rest"]["points"] == pytest.approx(logit, abs=1e-5)
    assert detail["total"] == pytest.approx(logit, abs=1e-5)
    assert "points" in record["summary"]


def test_the_kind_says_what_can_be_changed(api: Api) -> None:
    info = next(e for e in api.call("GET", "/explainers").json() if e["name"] == "protovit")
    assert set(info["edits"]) == {"mute_prototype", "gate_part", "remove_part", "exclude_region", "why_not"}
    models = {m["id"]: m for m in api.call("GET", "/models").json()}
    offered = {a["name"]: a["available"] for a in models[MODEL]["explainers"]}
    assert offered["protovit"] and offered["saliency"] and offered["attention-rollout"] and not offered["scbm"]


def test_live_equals_saved_equals_replayed(api: Api, record: dict[str, Any]) -> None:
    edits = [{"exclude_region": [0, 0, 12, 12]}, {"gate_part": [0, 1]}, {"mute_prototype": 2}, {"why_not": 0}]
    panel = live(api, record, 1, *edits).json()
    saved = api.call("POST", "/interventions", json={"explanation": record["id"], "edits": edits})
    assert saved.status_code in (200, 202), saved.text
    kept = api.finished(saved.json()["id"])
    assert kept["state"] == "succeeded" and kept["parent"] == record["id"], kept
    same = api.call("POST", "/interventions", json={"explanation": record["id"], "edits": edits[::-1]})
    assert same.json()["id"] == kept["id"], "the order of edits makes no other record"
    shown = told(api, kept)["detail"]
    assert shown["rows"] == panel["detail"]["rows"] and shown["contrast"] == panel["detail"]["contrast"]
    assert [p["logit"] for p in kept["prediction"]] == [p["logit"] for p in panel["prediction"]]
    again = api.call("POST", f"/explanations/{kept['id']}/recompute").json()
    assert api.finished(again["id"])["verified"]["equal"]
    # from the saved record back: the list without its edits is the record as it was found
    back = live(api, kept, 2).json()["detail"]
    assert back["rows"] == told(api, record)["detail"]["rows"]


def test_suggestions_flip_and_show_the_nearest_patches(api: Api, record: dict[str, Any]) -> None:
    said = live(api, record, 10, suggest=True).json()["suggestion"]
    for flip in said["flips"]:
        if flip["mute"]:
            panel = live(api, record, 11, *({"mute_prototype": j} for j in flip["mute"])).json()
            logits = {p["index"]: p["logit"] for p in panel["prediction"]}
            assert logits[flip["class"]] > logits[record["target"]["class"]]
    assert all(len(near) == 3 for near in said["nearest"].values())


def test_what_makes_no_sense_is_a_sentence(api: Api, record: dict[str, Any]) -> None:
    for edit in ({"mute_prototype": 99}, {"gate_part": [0, 9]}, {"exclude_region": [0, 0, 64, 48]}, {"why_not": "cat"}):
        for answer in (
            live(api, record, 20, edit),
            api.call("POST", "/interventions", json={"explanation": record["id"], "edits": [edit]}),
        ):
            assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_edit", answer.text
    other = api.upload(noise(2))["id"]
    refused = api.ask(model=MODEL, explainer="protovit", input=record["input"], target={"similar_to": other})
    assert refused.status_code == 422 and "classes" in refused.json()["error"]["message"]


def test_methods_on_pictures_explain_it_too(api: Api, record: dict[str, Any]) -> None:
    for explainer in ("saliency", "grad-cam", "attention-rollout"):
        found = api.explain(model=MODEL, explainer=explainer, input=record["input"])
        assert found["state"] == "succeeded", found["error"]


def test_it_is_shared_exported_and_drawn_from_what_is_stored(api: Api, record: dict[str, Any]) -> None:
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    page = api.http.get(share["url"].split(str(api.http.base_url).rstrip("/"))[-1].replace("http://127.0.0.1:8000", ""))
    assert page.status_code == 200 and "This looks like that" in page.text
    assert 'class="scale"' not in page.text, "rows have no colour scale"
    digest = record["artifacts"][0]["digest"]
    for path in (f"/artifacts/{digest}/render.png", f"/explanations/{record['id']}/card.png"):
        drawn = api.call("GET", path)
        assert drawn.status_code == 200 and drawn.content[:4] in (b"\x89PNG", b"RIFF"), path
    for form in ("html", "pdf", "svg", "png", "csv", "parquet", "json", "bib"):
        file = api.call("GET", f"/explanations/{record['id']}/export.{form}")
        assert file.status_code == 200, (form, file.text[:300])
    rows = api.call("GET", f"/explanations/{record['id']}/export.csv").text.splitlines()
    assert rows[0].startswith("prototype,class,similarity,weight,points") and rows[-1].startswith("all,")


def test_sources_that_are_gone_are_said(tmp_path: Path) -> None:
    folder = write(tmp_path / "small")
    shutil.rmtree(folder / "pictures")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(settings(tmp_path, models=str(folder)), token=TOKEN, pages=False), headers=headers) as http:
        api = Api(started(http))
        found = api.explain(model=MODEL, explainer="protovit", input=api.upload(noise(1))["id"])
        detail = told(api, found)["detail"]
        assert {r["source"]["status"] for r in detail["rows"]} == {"unavailable"} and detail["pictures"] == {}
        assert api.call("GET", f"/artifacts/{found['artifacts'][0]['digest']}/render.png").status_code == 200
