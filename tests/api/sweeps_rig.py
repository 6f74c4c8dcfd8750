"""A model that has learned a shortcut, pictures in which one can see it, and a way to sweep them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from api_rig import Api, png

SIDE = 56

# Two places decide: a mark in the upper left corner, and what stands in the middle. Labels follow the middle.
MODEL = '''"""A model that looks at a mark in the corner as well as at the middle."""
import os, time
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(12.0))
    def forward(self, x):
        if os.path.exists(__file__ + ".slow"):
            time.sleep(0.2)
        corner = torch.relu(x[:, :, :16, :16].mean((1, 2, 3)) - 0.6)
        middle = torch.relu(x[:, :, 20:36, 20:36].mean((1, 2, 3)) - 0.6)
        found = self.scale * (corner + middle)
        return torch.stack([found, 1.0 - found], 1)

def load():
    prepare = Preprocessing((56, 56), mean=(0.0,) * 3, std=(255.0,) * 3)
    return TorchImageClassifier(Net(), classes=["bird", "no bird"], preprocessing=prepare)
'''


def picture(corner: bool, middle: bool, seed: int) -> bytes:
    """Dark noise with a bright square where asked."""
    pixels = np.random.default_rng(seed).integers(20, 60, (SIDE, SIDE, 3), dtype=np.uint8)
    bright = np.random.default_rng(seed + 10_000).integers(220, 250, (16, 16, 3), dtype=np.uint8)
    if corner:
        pixels[:16, :16] = bright
    if middle:
        pixels[20:36, 20:36] = bright
    return png(pixels)


def planted(folder: Path, marked: int = 12, honest: int = 12, plain: int = 6, broken: int = 2) -> Path:
    """Pictures by label: of those labelled bird `honest` have something in the middle and `marked` only the mark; plain ones have nothing."""
    for label in ("bird", "no_bird"):
        (folder / label).mkdir(parents=True)
    for n in range(honest):
        (folder / "bird" / f"honest-{n:03}.png").write_bytes(picture(False, True, n))
    for n in range(marked):
        (folder / "no_bird" / f"marked-{n:03}.png").write_bytes(picture(True, False, 100 + n))
    for n in range(plain):
        (folder / "no_bird" / f"plain-{n:03}.png").write_bytes(picture(False, False, 200 + n))
    for n in range(broken):
        (folder / "bird" / f"<b>broken-{n}.png").write_bytes(b"this is no picture")
    return folder


def start(api: Api, **changes: Any) -> dict[str, Any]:
    body = {"model": "shortcut", "explainer": "input-x-gradient", "source": {"dataset": "birds"}, **changes}
    answer = api.call("POST", "/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def over(api: Api, ident: str, seconds: float = 60) -> dict[str, Any]:
    """The sweep once nothing is left to do."""
    end = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = api.call("GET", f"/sweeps/{ident}").json()
        if found["state"] not in ("running", "paused"):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.05)


def summarised(api: Api, ident: str) -> dict[str, Any]:
    answer = api.call("GET", f"/sweeps/{ident}/summary?wait=30")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["current"] and found["clusters"] is not None
    return found


def items(api: Api, ident: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = api.call(
            "GET", f"/sweeps/{ident}/items", params={**query, **({"cursor": cursor} if cursor else {})}
        ).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            assert len(found) == page["total"]
            return found
