"""The examiner itself: it finds each thing that must not happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from fanlight.artifact import Artifact, digest
from fanlight.bench._history import PROMISED, History, settle

REQUEST = {"input": "i", "seed": 1}
BLOB = Artifact(
    "map", "image-map", {"value": np.zeros((2, 2), np.float32)}, {"unit": "", "signed": False, "box": [0, 0, 2, 2]}
).to_bytes()
GOOD = {"id": "a", "state": "succeeded", "artifacts": [{"digest": digest(BLOB)}], "error": None}


class Server:
    """A server as its examiner sees it. Args: record, blob, again: what it answers."""

    def __init__(self, record: Any = GOOD, blob: bytes = BLOB, again: str = "a", status: int = 200):
        self.record, self.blob, self.again, self.status = record, blob, again, status

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(self.status, json={**GOOD, "id": self.again})
        if "/artifacts/" in request.url.path:
            return httpx.Response(200, content=self.blob)
        return httpx.Response(404 if self.record is None else 200, json=self.record)


def examined(server: Callable[[httpx.Request], httpx.Response], history: History) -> set[str]:
    with httpx.Client(base_url="http://test", transport=httpx.MockTransport(server)) as http:
        settle(http, history, list(history.accepted), 0.2)
    return {kind for kind, n in history.problems.items() if n}


@pytest.fixture
def history() -> History:
    made = History()
    made.promise("a", REQUEST)
    return made


def test_a_good_server_has_no_problems(history: History) -> None:
    assert examined(Server(), history) == set()
    assert history.results == {"a": (digest(BLOB),)} and history.unfinished == []


@pytest.mark.parametrize(
    "server, kind",
    [
        (Server(record=None), "lost"),
        (Server(record={**GOOD, "state": "running", "artifacts": []}), "lost"),
        (Server(record={**GOOD, "state": "failed", "artifacts": []}), "failed"),
        (Server(blob=BLOB[:-1]), "partial"),
        (Server(again="b"), "doubled"),
        (Server(status=500), "refused"),
    ],
    ids=["gone", "never finished", "failed", "truncated", "computed again", "error"],
)
def test_it_finds_a_bad_one(history: History, server: Server, kind: str) -> None:
    assert kind in PROMISED and kind in examined(server, history)


def test_it_finds_a_result_that_changed(history: History) -> None:
    history.see({**GOOD, "artifacts": [{"digest": "0" * 64}]})
    assert "changed" in examined(Server(), history)
    history.problems.clear()
    assert "changed" in examined(Server(record={**GOOD, "state": "failed", "artifacts": []}), history)
