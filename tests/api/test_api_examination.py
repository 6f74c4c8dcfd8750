"""A model examined for a page: a process of its own, one at a time, and what it found is kept."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from api_rig import MODEL, TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from fanlight.service import examinations


def until(api: Api, name: str) -> dict[str, Any]:
    end = time.monotonic() + 240
    while time.monotonic() < end:
        found: dict[str, Any] = api.call("GET", f"/models/{name}/examination").json()
        if found["state"] != "running":
            return found
        time.sleep(0.2)
    raise AssertionError("the examination did not end")


def test_a_model_is_examined_beside_the_server_and_the_report_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examinations, "SECONDS", 5.0)
    (tmp_path / "other.py").write_text(
        MODEL.replace("return self.head", "self.head.weight.data += 1; return self.head")
    )
    given = settings(tmp_path)
    given = given.model_copy(update={"models": f"{given.models},{tmp_path / 'other.py'}"})
    for again in (False, True):
        with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            api = Api(started(http))
            before = api.call("GET", "/models/tiny/examination").json()
            if again:
                assert before["state"] == "done", "what was found is gone after a restart"
                continue
            assert before["state"] == "none"
            answer = api.call("POST", "/models/tiny/examination")
            assert answer.status_code == 202 and answer.json()["state"] == "running"
            assert api.call("POST", "/models/tiny/examination").json()["since"] == answer.json()["since"], "begun twice"
            refused = api.call("POST", "/models/other/examination")
            assert refused.status_code == 429 and int(refused.headers["Retry-After"]) > 0
            assert "tiny" in refused.json()["error"]["message"]
            found = until(api, "tiny")
            assert found["state"] == "done" and found["sound"] and found["forward_seconds"] > 0
            assert {c["name"] for c in found["checks"]} >= {"load", "shape", "side effects"}
            costs = {c["name"]: c for c in found["costs"]}
            assert any(c["measured"] and c["seconds"] > 0 for c in costs.values())
            assert not costs["attention-rollout"]["available"] and costs["attention-rollout"]["reason"]
            api.call("POST", "/models/other/examination")
            bad = until(api, "other")
            assert not bad["sound"] and "Running it changed" in str(bad["checks"])


def test_a_model_that_is_not_there_is_refused(api: Api) -> None:
    for method in ("GET", "POST"):
        answer = api.call(method, "/models/nope/examination")
        assert answer.status_code == 404 and "nope" in answer.json()["error"]["message"]


def test_an_examination_ends_with_the_server(tmp_path: Path) -> None:
    with TestClient(
        create(settings(tmp_path), token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}
    ) as http:
        api = Api(started(http))
        assert api.call("POST", "/models/tiny/examination").status_code == 202
        began = time.monotonic()
    assert time.monotonic() - began < 30, "the server waited for the doctor"
