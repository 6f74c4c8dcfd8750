"""A trained model of the scenes, once its folder is there, is listed and explained like whatever else ships; a stand-in without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight import bundles
from fanlight.adapters import loader
from fanlight.app import create

pytest.importorskip("diffusers", reason="diffusers is not installed (pip install 'fanlight[diffusion]')")
pytest.importorskip("transformers", reason="transformers is not installed (pip install 'fanlight[diffusion]')")

from fanlight_models.diffusion import small
from fanlight_models.recipes import scenes_diffusion

NAME, TEXT = "scenes-diffusion", "a red circle left of a blue cross"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of what ships: the networks of the recipe as they are before the first step."""
    made = scenes_diffusion.Training.new("plain", 0)
    folder = tmp_path / "bundles" / NAME
    small.write(folder, made.net, made.text, made.tokens, scenes_diffusion.LAW, about=scenes_diffusion.about("plain"))
    (folder / "card.md").write_text("# Scenes, text to image\n\nA stand-in.\n")
    monkeypatch.setattr(bundles, "PLACE", tmp_path / "bundles")
    return folder


def told(api: Api, record: dict[str, Any]) -> Any:
    return api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}").json()["detail"]


def test_it_is_listed_with_its_card_and_explained_with_attention(place: Path, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(settings(tmp_path, scenes=True), token=TOKEN, pages=False), headers=headers) as http:
        api = Api(started(http))
        listed = {m["id"]: m for m in api.call("GET", "/models").json()}
        found = api.call("GET", f"/models/{NAME}").json()
        assert NAME in listed and found["task"] == "text-to-image" and found["size"] == [32, 32]
        assert (found["name"], found["terms"]) == ("Scenes, trained", "Apache-2.0") and "A stand-in." in found["card"]
        assert len(found["examples"]) == 3 and all("left of" in e for e in found["examples"])
        made = api.call("POST", "/inputs", json={"kind": "prompt", "value": TEXT}).json()
        asked = {"model": NAME, "explainer": "diffusion-pid", "input": made["id"]}
        record = api.explain(**asked, params={"nodes": "32", "steps": 4, "all_pairs": False})
        assert record["state"] == "succeeded", record["error"]
        detail = told(api, record)
        assert detail["drawn"]["guidance"] == 1 and detail["floor_map"] is not None
        assert [np.shape(a["values"]) for a in detail["attention"]] == [(16, 16)] * 2
        unknown = api.call("POST", "/inputs", json={"kind": "prompt", "value": "a purple elephant"}).json()
        refused = api.ask(**{**asked, "input": unknown["id"]})
        assert refused.status_code == 422 and "This model has no word “" in refused.json()["error"]["message"]


def test_without_the_scenes_it_is_not(place: Path, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(settings(tmp_path), token=TOKEN, pages=False), headers=headers) as http:
        assert NAME not in [m["id"] for m in Api(started(http)).call("GET", "/models").json()]


def test_a_folder_of_diffusers_is_known_by_what_is_in_it(place: Path) -> None:
    assert loader.named(place) == (NAME, {"diffusers": str(place)})
    assert loader.describe(loader.source(place))["name"] == "Scenes, trained"
