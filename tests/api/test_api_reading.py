"""Data sets that are still being read at the start: how far they are, and what is said to who asks for one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from fanlight.service import inputs


def test_a_folder_that_is_being_read_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "birds").mkdir()
    for n in range(3):
        (tmp_path / "birds" / f"{n}.png").write_bytes(noise(n))
    read, go_on = threading.Event(), threading.Event()
    original = inputs.upload

    def slow(context: Any, who: Any, name: str, blob: bytes, **more: Any) -> Any:
        if name == "2.png":
            read.set()
            assert go_on.wait(60)
        return original(context, who, name, blob, **more)

    monkeypatch.setattr(inputs, "upload", slow)
    given = settings(tmp_path, datasets=f"birds={tmp_path / 'birds'}")
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        try:
            api = Api(started(http))
            assert read.wait(60)
            assert api.call("GET", "/datasets/reading").json() == [
                {"id": "birds", "name": "birds", "done": 2, "total": 3}
            ]
            asked = {"model": "tiny", "explainer": "saliency", "source": {"dataset": "birds"}}
            for answer in (api.call("GET", "/datasets/birds/samples"), api.call("POST", "/sweeps", json=asked)):
                error = answer.json()["error"]
                assert answer.status_code == 404 and "still being read: 2 of 3 pictures" in error["message"]
            assert "no dataset named" in api.call("GET", "/datasets/bees/samples").json()["error"]["message"]
        finally:
            go_on.set()
        while api.call("GET", "/datasets/reading").json():
            pass
        assert api.call("GET", "/datasets/birds/samples").json()["total"] == 3


def test_a_folder_that_is_none_costs_nobody_the_others(tmp_path: Path) -> None:
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds" / "a.png").write_bytes(noise(0))
    given = settings(tmp_path, datasets=f"birds={tmp_path / 'birds'},bees={tmp_path / 'bees'}")
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        while api.call("GET", "/datasets/reading").json():
            pass
        assert "birds" in {d["id"] for d in api.call("GET", "/datasets").json()}
