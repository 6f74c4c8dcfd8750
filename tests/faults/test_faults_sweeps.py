"""A sweep survives kill -9 of the server at any moment: it goes on, and nothing is computed twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults_client import Remote
from PIL import Image

SWEPT = "succeeded"

pytestmark = pytest.mark.slow


def pictures(folder: Path, count: int) -> Path:
    folder.mkdir()
    for n in range(count):
        pixels = np.random.default_rng(n).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{n:03}.png")
    (folder / "broken.png").write_bytes(b"no picture")
    return folder


def shelved(remote: Remote) -> None:
    end = time.monotonic() + 60
    while "pictures" not in [d["id"] for d in remote.http.get("/datasets").json()]:
        assert time.monotonic() < end
        time.sleep(0.05)


def progressed(remote: Remote, ident: str, done: int, seconds: float = 60) -> dict[str, Any]:
    """The sweep once so many are finished, or it is over."""
    end = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = remote.http.get(f"/sweeps/{ident}").json()
        if found["state"] != "running" or found["counts"][SWEPT] >= done:
            return found
        assert time.monotonic() < end, found
        time.sleep(0.02)


def examine(start: Callable[..., Remote], tmp_path: Path, count: int, kills: int, seed: int) -> None:
    remote = start(datasets=f"pictures={pictures(tmp_path / 'pictures', count)}")
    shelved(remote)
    body = {"model": "tiny", "explainer": "saliency", "source": {"dataset": "pictures"}}
    answer = remote.http.post("/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    ident = answer.json()["id"]
    rng, seen = np.random.default_rng(seed), 0
    with remote.slow():
        for n in range(kills):
            found = progressed(remote, ident, seen + 2)
            assert found["state"] == "running", "there is something to lose"
            seen = found["counts"][SWEPT]
            time.sleep(float(rng.uniform(0, 0.3)))
            remote.server.kill()
            if n == 0:
                time.sleep(1)  # in which the sweep does not run
            remote.server.start()
            after = remote.http.get(f"/sweeps/{ident}").json()
            assert after["state"] == "running" and after["counts"][SWEPT] >= seen
    over = progressed(remote, ident, count + 1, 120)
    assert over["state"] == "done" and over["counts"][SWEPT] == count and over["counts"]["skipped"] == 1, over
    items = remote.http.get(f"/sweeps/{ident}/items?limit=200").json()["items"]
    made = [i["explanation"] for i in items if i["explanation"]]
    assert len(set(made)) == count
    assert remote.sql("select count(*) from explanation")[0][0] == count, "nothing is promised twice"
    assert all(
        jobs == 1 for (jobs,) in remote.sql("select count(*) from job where kind = 'explain' group by explanation")
    )
    for one in made:
        remote.whole(one)
    assert [i["reason"] for i in items if i["state"] == "skipped"], "the reason is kept"


@pytest.mark.timeout(120)
def test_a_sweep_goes_on_after_kill_9_and_computes_nothing_twice(start: Callable[..., Remote], tmp_path: Path) -> None:
    examine(start, tmp_path, 20, 1, 0)


@pytest.mark.timeout(1200)
def test_a_sweep_goes_on_after_kill_9_at_many_moments(start: Callable[..., Remote], tmp_path: Path) -> None:
    examine(start, tmp_path, 90, 12, 1)


def test_a_sweep_waits_while_its_model_is_another_and_says_so(start: Callable[..., Remote], tmp_path: Path) -> None:
    # more than can be jobs or finished when the server dies, however long a slow machine takes to kill it
    remote = start(datasets=f"pictures={pictures(tmp_path / 'pictures', 40)}")
    shelved(remote)
    body = {"model": "tiny", "explainer": "saliency", "source": {"dataset": "pictures"}}
    with remote.slow():
        ident = remote.http.post("/sweeps", json=body).json()["id"]
        progressed(remote, ident, 1)
        remote.server.kill()
    before = remote.model.read_text()
    remote.model.write_text(before.replace("manual_seed(0)", "manual_seed(1)"))
    remote.server.start()
    end = time.monotonic() + 30
    while (found := remote.http.get(f"/sweeps/{ident}").json())["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert found["state"] == "paused" and "no longer the one" in found["problem"]
    remote.server.kill()
    remote.model.write_text(before)
    remote.server.start()
    assert remote.http.post(f"/sweeps/{ident}/resume").json()["state"] == "running"
    counts = progressed(remote, ident, 41, 90)["counts"]
    failed = remote.http.get(f"/sweeps/{ident}/items?state=failed").json()["items"]
    # What was a job already when the model changed was refused by the worker, and says so; nothing further was tried.
    assert counts[SWEPT] + len(failed) == 40 and len(failed) <= 16
    assert all("model" in i["reason"] for i in failed)
