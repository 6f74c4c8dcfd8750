"""Trials on PostgreSQL end with the numbers that they have on SQLite."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, png, settings, started
from fastapi.testclient import TestClient
from sweeps_rig import over

from fanlight.app import create
from support.prototypes import write

COUNT = 6
RULE = [{"mute_prototype": 0}, {"remove_part": [4, 2]}]


def serving(folder: Path, **changes: Any) -> Iterator[Api]:
    for n in range(COUNT):
        place = folder / "pictures" / ("ant", "bee")[n % 2]
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(n).integers(0, 256, (4, 4, 3)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
        (place / f"{n}.png").write_bytes(png(pixels))
    given = settings(folder, datasets=f"pictures={folder / 'pictures'}", trust="request", **changes)
    given = given.model_copy(update={"models": str(write(folder / "small"))})
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        end = time.monotonic() + 30
        while "pictures" not in [d["id"] for d in api.call("GET", "/datasets").json()]:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield api


def tried(api: Api) -> tuple[Any, list[Any]]:
    body = {"model": "small", "explainer": "protovit", "source": {"dataset": "pictures"}}
    swept = over(api, api.call("POST", "/sweeps", json=body).json()["id"])
    made = api.call("POST", f"/sweeps/{swept['id']}/trials", json={"edits": RULE}).json()
    end = time.monotonic() + 30
    while made["state"] == "running":
        assert time.monotonic() < end, made
        time.sleep(0.05)
        made = api.call("GET", f"/trials/{made['id']}").json()
    assert made["state"] == "done" and made["counts"]["done"] == COUNT
    summary = api.call("GET", f"/trials/{made['id']}/summary").json()
    items = api.call("GET", f"/trials/{made['id']}/items").json()["items"]
    assert api.call("DELETE", f"/sweeps/{swept['id']}").status_code == 200
    assert api.call("GET", f"/trials/{made['id']}").status_code == 404
    found = [(i["position"], i["before"], i["after"], i["after_probability"], i["move"]) for i in items]
    return {k: v for k, v in summary.items() if k != "trial"}, found


@pytest.mark.postgres
def test_a_trial_is_the_same_on_both_databases(tmp_path: Path, postgres_url: str) -> None:
    found = []
    for name, changes in (("sqlite", {}), ("postgres", {"database_url": postgres_url})):
        (tmp_path / name).mkdir()
        server = serving(tmp_path / name, **changes)
        found.append(tried(next(server)))
        assert next(server, None) is None
    assert found[0] == found[1] and found[0][0]["labelled"] == COUNT
