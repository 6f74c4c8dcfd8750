"""Folders of diffusers through the whole server, tiny and random: read, drawn, measured with attention, drawn again; and those that are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.adapters import loader
from fanlight.app import create
from fanlight.errors import BadRequest
from support.pipelines import flux, saved, third

TEXT = "a red teddy bear and a dog"
FAST = {"nodes": "32", "steps": 4, "words": "teddy bear, dog"}
MIXED = ("three", "flux")
"""Whose transformers mix text and picture, so that there is no cross-attention."""
EVERY = ("one", "two", "large", "three", "flux")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stable Diffusion 1 (noise), 2 (velocity), SDXL, 3 (flow matching), and FLUX."""
    place = tmp_path_factory.mktemp("pipelines")
    third(place / "three")
    flux(place / "flux")
    return {
        "one": saved(place / "one"),
        "two": saved(place / "two", head="v_prediction"),
        "large": saved(place / "large", large=True),
        "three": place / "three" / "model",
        "flux": place / "flux" / "model",
    }


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, folders: dict[str, Path]) -> Iterator[Api]:
    models = ",".join(f"{name}=diffusers:{folder}" for name, folder in folders.items())
    given = settings(tmp_path_factory.mktemp("server"), models=models)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        yield Api(started(http))


def asked(api: Api, model: str, value: Any = TEXT, **params: Any) -> dict[str, Any]:
    made = api.call("POST", "/inputs", json={"kind": "prompt", "value": value}).json()
    return api.explain(model=model, explainer="diffusion-pid", input=made["id"], params={**FAST, **params})


def told(api: Api, record: dict[str, Any]) -> dict[str, Any]:
    return api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}").json()["detail"]  # type: ignore[no-any-return]


def test_they_are_models_that_take_words(api: Api) -> None:
    found = {m["id"]: m for m in api.call("GET", "/models").json()}
    assert set(EVERY) <= set(found), api.http.app.state.context.models.problems  # type: ignore[attr-defined]
    assert all(found[name]["takes"] == "prompt" and found[name]["size"] == [16, 16] for name in EVERY)
    assert len({found[name]["digest"] for name in EVERY}) == 5, "another prediction type is another model"
    assert all("experiment" in found[name]["description"] for name in MIXED)
    assert "not an MMSE denoiser" in found["flux"]["description"]


@pytest.mark.parametrize("name", EVERY)
def test_words_are_measured_from_end_to_end(api: Api, name: str) -> None:
    record = asked(api, name)
    assert record["state"] == "succeeded", record["error"]
    detail = told(api, record)
    found = {m["name"]: np.array(m["values"]) for m in detail["maps"]}
    assert found["both"].shape == (8, 8) and found["both"].sum() > 0
    atoms = sum(found[n] for n in ("redundant", "unique_a", "unique_b", "synergy"))
    np.testing.assert_allclose(atoms, found["both"], atol=5e-3 * max(np.abs(m).max() for m in found.values()))
    looks = np.array([a["values"] for a in detail["attention"]])
    assert looks.shape == ((0,) if name in MIXED else (len(detail["words"]), 8, 8))
    assert [a["title"] for a in detail["attention"]] in ([], [w[2] for w in detail["words"]])
    assert ("not an MMSE denoiser" in detail["caveat"]) == ("not an MMSE" in record["summary"]) == (name == "flux")
    assert detail["drawn"]["guidance"] == (3.5 if name == "flux" else 7.5)
    floor = detail["floor_map"]
    assert np.shape(floor["values"]) == (8, 8) and floor["sum"] == pytest.approx(np.sum(floor["values"]), rel=1e-2)
    rows = api.call("GET", f"/explanations/{record['id']}/export.csv").text.splitlines()
    assert ("attention 2: teddy bear" in rows[0]) == (name not in MIXED) and "noise floor (nat)" in rows[0]
    again = api.call("POST", f"/explanations/{record['id']}/recompute").json()
    assert api.finished(again["id"])["verified"]["equal"]
    change = {"explanation": record["id"], "edits": [{"drop_word": 6}]}
    changed = api.finished(api.call("POST", "/interventions", json=change).json()["id"])
    assert changed["state"] == "succeeded" and told(api, changed)["redrawn_as"] == "without “dog”"


def test_a_given_picture_of_another_size(api: Api) -> None:
    picture = api.upload(noise(1))["id"]
    record = asked(api, "one", {"text": TEXT, "picture": picture}, context=False)
    assert record["state"] == "succeeded", record["error"]
    detail = told(api, record)
    assert "of 64 x 48 pixels its middle 48 x 48 was brought to the 16 x 16" in detail["fitted"]
    assert detail["drawn"] is None and detail["attention"] == []


def test_what_a_long_prompt_loses_is_said(api: Api) -> None:
    record = asked(api, "one", "a teddy bear and a dog " + "and a red " * 30)
    assert record["state"] == "succeeded" and "The model never saw “" in record["summary"], record
    made = api.call(
        "POST", "/inputs", json={"kind": "prompt", "value": "and a red " * 30 + "teddy bear and a dog"}
    ).json()
    lost = api.ask(model="one", explainer="diffusion-pid", input=made["id"], params=FAST)
    assert lost.status_code == 422 and "too long for this model" in lost.json()["error"]["message"]


def changed(folder: Path, place: Path, name: str, **values: Any) -> Path:
    shutil.copytree(folder, place)
    path = place / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return place


def test_folders_that_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    one = folders["one"]
    flow = {"prediction_type": "flow"}
    pickled = changed(one, tmp_path / "pickled", "model_index.json")
    weights = pickled / "unet/diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    broken = changed(one, tmp_path / "broken", "model_index.json")
    (broken / "unet/diffusion_pytorch_model.safetensors").write_bytes(b"nothing")
    for folder, said in (
        (tmp_path / "nowhere", "There is no folder"),
        (
            changed(one, tmp_path / "hunyuan", "model_index.json", _class_name="HunyuanDiTPipeline"),
            "holds a HunyuanDiTPipeline",
        ),
        (changed(folders["flux"], tmp_path / "plain", "transformer/config.json", guidance_embeds=False), "schnell"),
        (changed(one, tmp_path / "sd-turbo", "model_index.json"), "distilled to draw in few steps"),
        (
            changed(folders["large"], tmp_path / "sdxl-lightning-4step", "model_index.json"),
            "distilled to draw in few steps",
        ),
        (changed(folders["three"], tmp_path / "three-turbo", "model_index.json"), "distilled to draw in few steps"),
        (changed(one, tmp_path / "quick", "scheduler/scheduler_config.json", _class_name="LCMScheduler"), "distilled"),
        (changed(one, tmp_path / "flow", "scheduler/scheduler_config.json", **flow), "predicts “flow”"),
        (pickled, "pickles are not opened"),
        (broken, "cannot be loaded by diffusers"),
    ):
        with pytest.raises(BadRequest, match=said):
            loader.load(loader.source(f"diffusers:{folder}"))


def test_a_folder_that_is_refused_stops_no_other(folders: dict[str, Path], tmp_path: Path) -> None:
    bad = changed(folders["one"], tmp_path / "lcm-model", "model_index.json")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    given = settings(tmp_path, models=f"bad=diffusers:{bad},{tmp_path / 'tiny.py'}")
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        started(http)
        models = http.app.state.context.models  # type: ignore[attr-defined]
        assert [m["id"] for m in http.get("/api/v1/models").json()] == ["tiny"]
        assert "distilled" in next(iter(models.problems.values()))
