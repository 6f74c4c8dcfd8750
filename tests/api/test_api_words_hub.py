"""A model by its name on the hub through the whole server: pinned to the commit that was found at the start, which the provenance names."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from support.hub_cache import COMMITS, held, offline
from support.pipelines import saved

NAME = "acme/tiny-sd"


def test_results_name_the_commit_and_go_on_with_it_when_the_branch_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, folder = tmp_path / "hub", saved(tmp_path)
    offline(monkeypatch, cache)
    held(cache, NAME, folder)
    (tmp_path / "server").mkdir()
    given = settings(tmp_path / "server", models=f"diffusers:{NAME},diffusers:acme/none")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        api = Api(started(http))
        models = http.app.state.context.models  # type: ignore[attr-defined]
        assert "could not be fetched" in models.problems["diffusers:acme/none"]
        about = models.find("tiny-sd")
        assert about["source"] == {"diffusers": f"{NAME}@{COMMITS[0]}"} and about["given"] == f"diffusers:{NAME}"
        held(cache, NAME, folder, COMMITS[1])  # before the model is loaded to compute
        made = api.call("POST", "/inputs", json={"kind": "prompt", "value": "a red teddy bear and a dog"}).json()
        params = {"nodes": "32", "steps": 4, "words": "bear, dog", "all_pairs": False}
        record = api.explain(model="tiny-sd", explainer="diffusion-pid", input=made["id"], params=params)
        assert record["state"] == "succeeded", record["error"]
        assert record["provenance"]["versions"][NAME] == COMMITS[0]
        assert record["provenance"]["model_digest"] == about["digest"]
