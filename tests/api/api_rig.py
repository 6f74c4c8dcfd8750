"""A whole server in this process: real engine in a thread or inline, a tiny model of its own, fresh folders."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.testclient import TestClient
from PIL import Image

from fanlight.settings import Settings

TOKEN = "a-token-for-tests"

MODEL = '''"""A small model for tests: left against right, with a few ways to misbehave on request."""
import time
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 3)
        self.head.weight.data *= 50  # far enough from the baseline that trust can be measured
    def forward(self, x):
        red, green, blue = (float(v) for v in x.detach().mean((2, 3))[0])
        if red > 0.99 and green < 0.01:
            raise RuntimeError("this model cannot see red")
        if green > 0.99 and red < 0.01:
            return x.new_full((len(x), 3), float("nan"))
        if blue > 0.99 and red < 0.01:
            self.train()
        return self.head(self.features(x).mean((2, 3)))

def load():
    return TorchImageClassifier(Net(), classes=["left", "right", "middle"], preprocessing=Preprocessing((64, 64)), features_at="features")
'''


def png(pixels: np.ndarray[Any, Any] | tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> bytes:
    """PNG of pixels (h, w, 3) or of one colour."""
    image = Image.new("RGB", size, pixels) if isinstance(pixels, tuple) else Image.fromarray(pixels)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def noise(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    return png(np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8))


class Api:
    """The server as a client sees it."""

    def __init__(self, http: TestClient):
        self.http = http

    def call(self, method: str, path: str, **k: Any) -> Any:
        return self.http.request(method, "/api/v1" + path, **k)

    def upload(self, blob: bytes, name: str = "picture.png") -> dict[str, Any]:
        answer = self.call("POST", "/inputs", files={"file": (name, blob)})
        assert answer.status_code == 201, answer.text
        return answer.json()  # type: ignore[no-any-return]

    def ask(self, wait: float = 10, **spec: Any) -> Any:
        body = {"model": "tiny", "explainer": "saliency", **spec}
        return self.call("POST", f"/explanations?wait={wait}", json=body)

    def explain(self, **spec: Any) -> dict[str, Any]:
        """The finished record."""
        answer = self.ask(**spec)
        assert answer.status_code in (200, 202), answer.text
        return self.finished(answer.json()["id"])

    def finished(self, ident: str) -> dict[str, Any]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            record: dict[str, Any] = self.call("GET", f"/explanations/{ident}").json()
            if record["state"] not in ("queued", "running"):
                return record
            time.sleep(0.02)
        raise AssertionError(f"{ident} was not finished in time")

    def trusted(self, ident: str) -> dict[str, Any]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            trust: dict[str, Any] = self.call("GET", f"/explanations/{ident}/trust").json()
            if trust["state"] not in ("pending", "running"):
                return trust
            time.sleep(0.05)
        raise AssertionError(f"the trust of {ident} was not measured in time")


def settings(folder: Path, **changes: Any) -> Settings:
    model = folder / "tiny.py"
    model.write_text(MODEL)
    given = {
        "data_dir": folder / "data",
        "models": str(model),
        "engine": "local",
        "isolate": False,
        "default_model": False,
        "examples": False,
        "field_guide": False,
        "scenes": False,
        "threads": 1,
    }
    return Settings(**{**given, **changes})


def started(http: TestClient) -> TestClient:
    """Waits until models are registered."""
    end = time.monotonic() + 60
    while http.get("/readyz").status_code != 200:
        assert time.monotonic() < end, http.get("/readyz").text
        time.sleep(0.02)
    return http
