"""Recomputing, deleting and cancelling more than once: one record stands for one request, whatever the order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from api_rig import Api, noise, png


def listed(api: Api) -> list[str]:
    return [e["id"] for e in api.call("GET", "/explanations").json()["items"]]


def again(api: Api, ident: str) -> dict[str, Any]:
    return api.finished(api.call("POST", f"/explanations/{ident}/recompute?wait=10").json()["id"])


def test_eight_people_recompute_at_once_and_one_record_comes_of_it(api: Api) -> None:
    record = api.explain(
        input=api.upload(noise(1))["id"], explainer="kernel-shap", params={"samples": 16384, "patch": 8}
    )
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: api.call("POST", f"/explanations/{record['id']}/recompute").json()["id"], range(8))
        )
    assert len(set(answers)) == 1
    assert api.finished(answers[0])["state"] == "succeeded" and listed(api) == [answers[0]]


def test_recomputing_what_was_superseded_recomputes_the_newest(api: Api) -> None:
    first = api.explain(input=api.upload(noise(2))["id"])
    second = again(api, first["id"])
    third = again(api, first["id"])
    assert third["recomputes"] == second["id"] and listed(api) == [third["id"]]


def test_deleting_the_newest_brings_back_what_it_superseded(api: Api) -> None:
    photo = api.upload(noise(3))["id"]
    first = api.explain(input=photo)
    second = again(api, first["id"])
    api.call("DELETE", f"/explanations/{second['id']}")
    assert listed(api) == [first["id"]] and api.explain(input=photo)["id"] == first["id"]
    assert again(api, first["id"])["verified"]["equal"]


def test_recomputing_a_failure_is_a_request_like_any_other(api: Api) -> None:
    photo = api.upload(png((255, 0, 0)))["id"]
    failed = api.explain(input=photo)
    assert failed["state"] == "failed"
    second = again(api, failed["id"])
    assert second["id"] != failed["id"] and second["recomputes"] is None


def test_cancelling_twice_says_that_it_is_over(api: Api) -> None:
    job = api.ask(
        wait=0, input=api.upload(noise(4))["id"], explainer="kernel-shap", params={"samples": 16384, "patch": 8}
    ).json()
    assert api.call("DELETE", f"/jobs/{job['job']}").status_code == 200
    second = api.call("DELETE", f"/jobs/{job['job']}")
    assert second.status_code == 409 and second.json()["error"]["code"] == "job_over"
    assert api.finished(job["id"])["state"] == "cancelled"


def test_a_model_path_that_cannot_be_read_costs_nobody_the_others(tmp_path: Any) -> None:
    from api_rig import TOKEN, settings, started
    from fastapi.testclient import TestClient

    from fanlight.app import create

    good = settings(tmp_path)
    app = create(good.model_copy(update={"models": f"{'x' * 300}.py,{good.models}"}), token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        assert api.explain(input=api.upload(noise(5))["id"])["state"] == "succeeded"
        assert api.call("GET", "/system").json()["settings"]["problems"]
