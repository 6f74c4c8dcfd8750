"""A trial survives kill -9 of the server, and its numbers are those of one that nobody disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults_client import Remote
from PIL import Image

import fanlight_models

BUNDLE = Path(fanlight_models.__file__).parent / "bundles" / "scbm-field-guide"
COUNT = 30
RULE = [{"set_concept": {"concept": "bill shape::hooked", "value": 0.6}}, {"set_concept": {"concept": 3, "value": 0.2}}]


def pictures(folder: Path) -> Path:
    folder.mkdir()
    for n in range(COUNT):
        pixels = np.random.default_rng(n).integers(0, 255, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((64, 64)).save(folder / f"{n:03}.png")
    return folder


def until(remote: Remote, path: str, enough: Callable[[dict[str, Any]], bool], seconds: float = 90) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = remote.http.get(path).json()
        if found["state"] != "running" or enough(found):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.01)


def outcome(remote: Remote, name: str) -> list[tuple[Any, ...]]:
    found = remote.http.get(f"/trials/{name}/items?limit=200").json()["items"]
    return [(i["position"], i["state"], i["after"], i["after_probability"], i["move"]) for i in found]


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_trial_goes_on_after_kill_9_to_the_same_numbers(start: Callable[..., Remote], tmp_path: Path) -> None:
    remote = start(datasets=f"pictures={pictures(tmp_path / 'pictures')}", models=BUNDLE)
    body = {
        "model": BUNDLE.name,
        "explainer": "scbm",
        "source": {"dataset": "pictures"},
        "params": {"samples": 500},  # so that an edit takes a while
    }
    end = time.monotonic() + 60
    while "pictures" not in [d["id"] for d in remote.http.get("/datasets").json()]:
        assert time.monotonic() < end
        time.sleep(0.05)
    answer = remote.http.post("/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    swept = answer.json()["id"]
    assert until(remote, f"/sweeps/{swept}", lambda _: False)["counts"]["succeeded"] == COUNT
    name = remote.http.post(f"/sweeps/{swept}/trials", json={"edits": RULE}).json()["id"]
    found = until(remote, f"/trials/{name}", lambda t: t["counts"]["done"] > 0)
    assert found["state"] == "running", "there is something to lose"
    remote.server.kill()
    remote.server.start()
    after = remote.http.get(f"/trials/{name}").json()
    assert after["counts"]["done"] >= found["counts"]["done"]
    over = until(remote, f"/trials/{name}", lambda _: False)
    assert over["state"] == "done" and over["counts"]["done"] == COUNT, over
    calm = remote.http.post(f"/sweeps/{swept}/trials", json={"edits": RULE}).json()["id"]
    until(remote, f"/trials/{calm}", lambda _: False)
    assert outcome(remote, name) == outcome(remote, calm)
