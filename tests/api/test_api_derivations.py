"""Derivations through the API: a prototype taken out is a further model on the running server; what is refused, cancelled, done again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from api_rig import TOKEN, Api, noise, png, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from support.prototypes import CLASSES, small, write

COUNT = 24


def fill(folder: Path) -> Path:
    """Noise in folders named by what the small model says of it."""
    rng = np.random.default_rng(3)
    for n in range(COUNT):
        coarse = rng.integers(0, 256, (4, 4, 3)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
        x = (torch.from_numpy(coarse).permute(2, 0, 1).float()[None] - 127.5) / 64.0
        place = folder / CLASSES[int(small().model(x).logits.argmax())]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:02}.png").write_bytes(png(coarse))
    return folder


def serving(tmp_path: Path) -> Iterator[Api]:
    data = tmp_path / "noise"
    given = settings(tmp_path, datasets=f"noise={data if data.exists() else fill(data)}", trust="request")
    bundle = tmp_path / "small"
    models = f"{given.models},{bundle if bundle.exists() else write(bundle)}"
    given = given.model_copy(update={"models": models})
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        end = time.monotonic() + 30
        while "noise" not in [d["id"] for d in api.call("GET", "/datasets").json()]:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield api


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    yield from serving(tmp_path)


def ask(api: Api, remove: list[int], model: str = "small", dataset: str = "noise") -> Any:
    return api.call("POST", f"/models/{model}/derivations", json={"change": {"remove": remove}, "dataset": dataset})


def ended(api: Api, name: str, seconds: float = 90) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = api.call("GET", f"/derivations/{name}").json()
        if found["state"] not in ("queued", "running"):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.1)


def test_a_prototype_is_taken_out_and_the_new_model_explains(api: Api) -> None:
    answer = ask(api, [3])
    assert answer.status_code == 202, answer.text
    assert answer.json()["state"] in ("queued", "running") and answer.json()["mine"]
    done = ended(api, answer.json()["id"])
    assert done["state"] == "done", done
    effect = done["effect"]
    assert effect["labelled"] == COUNT and effect["before"]["count"] == COUNT
    assert effect["difference"]["lo"] <= effect["difference"]["value"] <= effect["difference"]["hi"]
    assert effect["after"]["count"] == COUNT - effect["spoiled"]
    model = api.call("GET", f"/models/{done['result']}").json()
    assert model["name"] == done["result_name"] == "Small prototypes, without prototype 3"
    assert "## Without prototype 3" in model["card"]
    assert model["digest"] != api.call("GET", "/models/small").json()["digest"]
    photo = api.upload(noise(1))["id"]
    record = api.explain(model=done["result"], explainer="protovit", input=photo, params={"rows": 20})
    assert record["state"] == "succeeded", record["error"]
    told = api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}").json()["detail"]
    out = next(r for r in told["rows"] if r["prototype"] == 3)
    assert out["points"] == 0 and out["flags"] == ["taken out of this model for good"]
    assert [d["id"] for d in api.call("GET", "/derivations").json()] == [done["id"]]
    log = api.call("GET", "/audit?action=model.derive").json()["items"]
    assert log[0]["subject"] == "small" and log[0]["detail"]["remove"] == [3]
    again = ask(api, [0], model=done["result"]).json()
    assert ended(api, again["id"])["result_name"] == "Small prototypes, without prototypes 0 and 3"


def test_a_prototype_forgets_as_a_job(api: Api) -> None:
    body = {"change": {"forget": [2]}, "dataset": "noise"}
    done = ended(api, api.call("POST", "/models/small/derivations", json=body).json()["id"])
    assert done["state"] == "done" and done["result_name"] == "Small prototypes, prototype 2 anew", done
    assert done["effect"]["zeroed"] is None and 0 < done["effect"]["labelled"] < COUNT
    both = {"change": {"forget": [2], "remove": [3]}, "dataset": "noise"}
    assert api.call("POST", "/models/small/derivations", json=both).status_code == 422
    body = {"change": {"add_class": "yak"}, "dataset": "noise"}
    failed = ended(api, api.call("POST", "/models/small/derivations", json=body).json()["id"])
    assert failed["state"] == "failed" and "0 pictures labelled “yak”" in failed["problem"]


def test_what_cannot_be_is_a_sentence(api: Api) -> None:
    for answer, status, code in (
        (ask(api, [1], model="tiny"), 409, "not_available"),
        (ask(api, [1], model="huge"), 404, "unknown_model"),
        (ask(api, [1], dataset="silence"), 404, "unknown_dataset"),
        (ask(api, []), 422, "invalid_request"),
        (api.call("GET", "/derivations/nothing"), 404, "unknown_derivation"),
        (api.call("GET", "/derivations/..%2F.."), 400, None),
    ):
        assert answer.status_code == status, answer.text
        assert code is None or answer.json()["error"]["code"] == code
    failed = ended(api, ask(api, [99]).json()["id"])
    assert failed["state"] == "failed" and "numbered from 0 to 5" in failed["problem"]
    last = ended(api, ask(api, [0, 1]).json()["id"])
    assert last["state"] == "failed" and "nothing would speak for it" in last["problem"]
    over = api.call("DELETE", f"/derivations/{last['id']}")
    assert over.status_code == 409 and over.json()["error"]["code"] == "derivation_over"


def test_what_was_asked_for_is_done_by_the_next_server_and_a_cancelled_one_is_not(tmp_path: Path) -> None:
    """The folder is the record: what a server left without an end is done by the next one, once."""
    first = serving(tmp_path)
    api = next(first)
    waiting = [ask(api, [j]).json()["id"] for j in (1, 3, 5)]
    gone = api.call("DELETE", f"/derivations/{waiting[2]}").json()
    assert gone["state"] == "cancelled"
    assert next(first, None) is None  # the server ends while it works
    jobs = tmp_path / "data" / "derived" / ".jobs"
    assert not (jobs / waiting[1] / "outcome.json").exists(), "there is something left to do"
    second = serving(tmp_path)
    api = next(second)
    for name, left in zip(waiting[:2], (1, 3), strict=True):
        done = ended(api, name)
        assert done["state"] == "done" and done["result_name"].endswith(f"without prototype {left}"), done
    assert api.call("GET", f"/derivations/{waiting[2]}").json()["state"] == "cancelled"
    made = sorted(p.name for p in (tmp_path / "data" / "derived").glob("[!.]*"))
    assert len(made) == 2, made
    assert next(second, None) is None
    outcome = json.loads((jobs / waiting[0] / "outcome.json").read_text())
    (jobs / waiting[0] / "outcome.json").unlink()  # as if it had died between the model and the end
    third = serving(tmp_path)
    api = next(third)
    assert ended(api, waiting[0])["state"] == "done"
    again = json.loads((jobs / waiting[0] / "outcome.json").read_text())
    assert (again["bundle"], again["digest"]) == (outcome["bundle"], outcome["digest"])
    assert sorted(p.name for p in (tmp_path / "data" / "derived").glob("[!.]*")) == made
    assert next(third, None) is None
