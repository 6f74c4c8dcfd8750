"""A whole server in this process: real engine in a thread or inline, a tiny model of its own, fresh folders."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from fanlight import bundles
from fanlight.app import create
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
    return TorchImageClassifier(Net(), classes=["left", "right", "left"][:2] + ["middle"], preprocessing=Preprocessing(size=(32, 32)), features="features")
'''


def png(pixels: np.ndarray[Any, Any] | tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> bytes:
    """PNG of pixels (h, w, 3) or of one colour."""
    image = Image.new("RGB", size, pixels) if isinstance(pixels, tuple) else Image.fromarray(pixels)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def noise(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    return png(np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8))
