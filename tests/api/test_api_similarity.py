"""Similarity to another stored picture as a target, from the request to its trust."""

from __future__ import annotations

import pytest
from api_rig import MODEL, TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create


def test_it_is_explained_stored_found_again_and_measured(api):
    one, other, third = (api.upload(noise(n))["id"] for n in (1, 2, 3))
    record = api.explain(input=one, target={"similar_to": other})
    assert record["state"] == "succeeded", record["error"]
    assert record["target"] == {"similar_to": other}
    assert record["target_name"] == f"similarity to picture {other[:8]}"
    assert [p["name"] for p in record["prediction"]] and record["prediction"][0]["probability"] is not None
    assert sorted(p["name"] for p in record["prediction"]) == ["left", "middle", "right"]
    assert api.explain(input=one, target={"similar_to": other})["id"] == record["id"]
    another = api.explain(input=one, target={"similar_to": third})
    plain = api.explain(input=one)
    assert plain["target"] == {"class": plain["prediction"][0]["index"]}
    maps = {r["artifacts"][0]["digest"] for r in (record, another, plain)}
    assert len(maps) == 3
    assert api.trusted(record["id"])["state"] in ("succeeded", "unavailable")
    again = api.call("POST", f"/explanations/{record['id']}/recompute").json()
    assert api.finished(again["id"])["verified"]["equal"]


@pytest.mark.parametrize("explainer", ["integrated-gradients", "grad-cam", "occlusion", "kernel-shap", "random"])
def test_every_kind_of_explainer_works_on_it(api, explainer):
    one, other = (api.upload(noise(n))["id"] for n in (1, 2))
    record = api.explain(input=one, target={"similar_to": other}, explainer=explainer)
    assert record["state"] == "succeeded", record["error"]
    assert api.trusted(record["id"])["state"] in ("succeeded", "unavailable")


def test_many_at_once_are_not_mixed_up(api):
    """Requests of one batch share model, method and parameters; the other picture is part of what they share."""
    one, *others = (api.upload(noise(n))["id"] for n in range(5))
    promised = [api.ask(wait=0, input=one, target={"similar_to": o}).json()["id"] for o in others]
    found = [api.finished(p) for p in promised]
    assert [r["target"]["similar_to"] for r in found] == others
    assert len({r["artifacts"][0]["digest"] for r in found}) == len(others)
    alone = api.call("POST", f"/explanations/{promised[2]}/recompute").json()
    assert api.finished(alone["id"])["verified"]["largest_difference"] < 1e-4


def test_a_picture_that_is_not_there_is_a_sentence(api):
    one = api.upload(noise(1))["id"]
    answer = api.ask(input=one, target={"similar_to": "0" * 64})
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "unknown_input"
    answer = api.ask(input=one, target={"similar_to": 7})
    assert answer.status_code == 422 and "similar_to" in answer.text


def test_a_live_change_of_class_needs_the_model(api):
    one, other = (api.upload(noise(n))["id"] for n in (1, 2))
    record = api.explain(input=one, target={"similar_to": other}, explainer="occlusion")
    body = {"session": "s", "explanation": record["id"], "seq": 1, "edits": [{"set_target": 1}]}
    answer = api.call("POST", "/live", json=body)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "not_editable"
    kept = api.call(
        "POST", "/interventions", json={"explanation": record["id"], "edits": [{"mask_region": [0, 0, 9, 9]}]}
    )
    assert api.finished(kept.json()["id"])["target"] == {"similar_to": other}


def test_a_model_without_an_embedding_refuses_in_a_sentence(tmp_path):
    text = MODEL.replace("return self.head(", "return 1.0 + self.head(")
    assert text != MODEL
    given = settings(tmp_path)
    (tmp_path / "tiny.py").write_text(text)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        one = api.upload(noise(1))["id"]
        answer = api.ask(input=one, target={"similar_to": one})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "not_available" and "embedding by one linear layer" in error["message"]
