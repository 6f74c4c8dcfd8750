"""What Prometheus reads: latencies by route template, jobs, queue, errors; never an id, a name or a secret as a label."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api_rig import TOKEN, Api, noise
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from fanlight.artifact import digest

LABELS = {"method", "route", "status", "kind", "state", "code", "le"}


def samples(api: Api) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = api.http.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    return {(s.name, frozenset(s.labels.items())): s.value for f in families for s in f.samples}


def value(api: Api, name: str, **labels: str) -> float:
    return samples(api).get((name, frozenset(labels.items())), 0.0)


def test_metrics_are_behind_the_gate(api: Api) -> None:
    assert TestClient(api.http.app).get("/metrics").status_code == 401


def test_a_request_is_counted_under_the_template_of_its_route(api: Api) -> None:
    labels: dict[str, Any] = {"method": "GET", "route": "/api/v1/explanations/{id}", "status": "4xx"}
    before = value(api, "fanlight_request_seconds_count", **labels)
    for n in range(3):
        assert api.call("GET", f"/explanations/nope{n}").status_code == 404
    assert value(api, "fanlight_request_seconds_count", **labels) == before + 3


def test_refusals_at_the_gate_are_counted_too(api: Api) -> None:
    labels = {"method": "GET", "route": "none", "status": "4xx"}
    before = value(api, "fanlight_request_seconds_count", **labels)
    assert TestClient(api.http.app).get("/api/v1/models").status_code == 401
    assert value(api, "fanlight_request_seconds_count", **labels) == before + 1


def test_jobs_are_counted_by_kind_and_state_and_how_they_ended(api: Api) -> None:
    ended = value(api, "fanlight_jobs_ended_total", kind="explain", state="done")
    failed = value(api, "fanlight_job_failures_total", code="model_failed")
    api.explain(input=api.upload(noise(1))["id"])
    assert value(api, "fanlight_jobs", kind="explain", state="succeeded") == 1
    assert value(api, "fanlight_jobs_ended_total", kind="explain", state="done") == ended + 1
    from api_rig import png

    assert api.explain(input=api.upload(png((255, 0, 0)))["id"])["state"] == "failed"
    assert value(api, "fanlight_job_failures_total", code="model_failed") == failed + 1
    assert value(api, "fanlight_engine_ready") == 1


def test_a_damaged_artifact_is_counted(api: Api, tmp_path: Path) -> None:
    record = api.explain(input=api.upload(noise(3))["id"])
    name = record["artifacts"][0]["digest"]
    (tmp_path / "data" / "artifacts" / name[:2] / name[2:4] / name).write_bytes(b"damaged")
    before = value(api, "fanlight_artifact_store_errors_total", code="artifact_damaged")
    assert api.call("GET", f"/artifacts/{name}/raw").status_code >= 400
    assert value(api, "fanlight_artifact_store_errors_total", code="artifact_damaged") == before + 1


def test_labels_are_of_closed_sets_and_hold_no_id_and_no_secret(api: Api) -> None:
    photo = api.upload(noise(4), name="my-secret-name.png")
    record = api.explain(input=photo["id"])
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    stranger = TestClient(api.http.app)
    assert stranger.get(f"/s/{share['token']}").status_code == 200
    assert stranger.get("/s/" + "x" * 43).status_code == 404
    assert stranger.request("BREW", "/api/v1/models").status_code in (401, 405)
    text = api.http.get("/metrics").text
    assert {name for _, labels in samples(api) for name, _ in labels} <= LABELS
    strangers = (photo["id"], record["id"], share["id"], share["token"], TOKEN, "my-secret-name", "BREW", "xxxx")
    assert [s for s in strangers if s in text] == []
    assert re.findall(r"[0-9a-f]{64}", text) == [] and digest(noise(4)) not in text
    assert 'route="/s/{token}"' in text


def test_an_answer_carries_the_id_of_its_request(api: Api) -> None:
    made = [api.call("GET", "/models").headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1] and all(re.fullmatch(r"[0-9a-f]{16}", m) for m in made)
    given = api.call("GET", "/models", headers={"x-request-id": "proxy-1234567"})
    assert given.headers["x-request-id"] == "proxy-1234567"
    odd = api.call("GET", "/models", headers={"x-request-id": "an id, with more in it"})
    assert re.fullmatch(r"[0-9a-f]{16}", odd.headers["x-request-id"])
