"""What the fault tests do with a server over the wire, and to its processes."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from PIL import Image

from fanlight.artifact import Artifact, digest
from support.processes import FanlightServer

MODEL = '''"""A small model for tests of faults."""
import os, time
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(4, 3)
    def forward(self, x):
        if os.path.exists(__file__ + ".slow"):
            time.sleep(0.15)
        return self.head(self.features(x).mean((2, 3)))

def load():
    return TorchImageClassifier(Net(), classes=["one", "two", "three"], preprocessing=Preprocessing(size=(128, 128)))
'''
LONG = {
    "explainer": "occlusion",
    "params": {"window": 16, "stride": 8},
}  # about 200 squares: four seconds while the model is slow


class Remote:
    """A running server, its client and its processes. Args: model: the file of its model."""

    def __init__(self, server: FanlightServer, model: Path):
        self.server, self.model = server, model
        self.slow_file = Path(str(model) + ".slow")
        self.http = httpx.Client(base_url=server.url + "/api/v1", headers=server.headers, timeout=60, trust_env=False)
        self.pictures = 0

    @contextlib.contextmanager
    def slow(self) -> Iterator[None]:
        self.slow_file.touch()
        try:
            yield
        finally:
            self.slow_file.unlink()

    @property
    def child(self) -> psutil.Process:
        """The compute worker."""
        return next(
            p for p in psutil.Process(self.server.pid).children() if "fanlight.engine.child" in " ".join(p.cmdline())
        )

    def picture(self) -> str:
        """The id of a picture that nobody has asked about."""
        self.pictures += 1
        pixels = np.random.default_rng([self.server.port, self.pictures]).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        answer = self.http.post("/inputs", files={"file": ("x.png", out.getvalue())})
        answer.raise_for_status()
        return str(answer.json()["id"])

    def ask(self, **request: Any) -> httpx.Response:
        body = {"model": "tiny", "explainer": "saliency", **request}
        return self.http.post("/explanations", json={**body, "input": body.get("input") or self.picture()})

    def promise(self, **request: Any) -> str:
        """The id of a record that was promised or is there."""
        answer = self.ask(**request)
        assert answer.status_code in (200, 202), answer.text
        return str(answer.json()["id"])

    def record(self, ident: str) -> dict[str, Any]:
        answer = self.http.get(f"/explanations/{ident}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def finished(self, ident: str, patience: float = 60) -> dict[str, Any]:
        end = time.monotonic() + patience
        while (record := self.record(ident))["state"] in ("queued", "running"):
            assert time.monotonic() < end, f"{ident} is still {record['state']}: {self.server.output()}"
            time.sleep(0.05)
        return record

    def begun(self, ident: str) -> None:
        """Waits until the worker is at it."""
        end = time.monotonic() + 30
        while self.record(ident)["state"] != "running":
            assert time.monotonic() < end, self.record(ident)["state"]
            time.sleep(0.01)

    def whole(self, ident: str) -> None:
        """The record succeeded and its artifacts are what their names say."""
        record = self.finished(ident)
        assert record["state"] == "succeeded", record["error"]
        for artifact in record["artifacts"]:
            blob = self.http.get(f"/artifacts/{artifact['digest']}/raw")
            assert blob.status_code == 200 and digest(blob.content) == artifact["digest"]
            Artifact.from_bytes(blob.content).check()

    def jobs(self, explanation: str) -> int:
        return self.sql("select count(*) from job where explanation = ?", explanation)[0][0]

    def events(self) -> list[int]:
        return [row[0] for row in self.sql("select id from event order by id")]

    def sql(self, query: str, *values: Any) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.server.data / "fanlight.sqlite")) as db:
            return list(db.execute(query, values))

    def artifact(self, name: str) -> Path:
        return self.server.data / "artifacts" / name[:2] / name[2:4] / name

    def stream(self, last: int | None, count: int) -> list[int]:
        """Ids of the next `count` persisted events after `last`; reads until there are as many."""
        headers = {"Last-Event-ID": str(last)} if last is not None else {}
        found: list[int] = []
        with self.http.stream("GET", "/events", headers=headers, timeout=30) as answer:
            for line in answer.iter_lines():
                if line.startswith("id:"):
                    found.append(int(line[3:]))
                    if len(found) == count:
                        break
        return found


@contextlib.contextmanager
def file_limit(pid: int, size: int) -> Iterator[None]:
    """A process that can write no file beyond `size` bytes: to it the disk is full."""
    old = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, old)


def error(answer: httpx.Response) -> dict[str, Any]:
    """The error of a refusal."""
    return dict(json.loads(answer.text)["error"])


def from_outside(url: str) -> str:
    """The same database for its superuser, before whom no wall stands."""
    return url.replace("//ordinary@", "//fanlight@")
