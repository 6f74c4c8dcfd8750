"""Model files that go wrong in one way each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="package", autouse=True)
def swept() -> Iterator[None]:
    """The doctor clears up before every run of an explainer; what other tests have left is not gone through each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


MODEL = """
import os, signal, torch
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
{forward}

def load():
    torch.manual_seed(0)
    small = Preprocessing(size=(32, 32))
    return TorchImageClassifier(Net(), classes=["a", "b"], preprocessing=small, features_at={at!r})
"""
SOUND = "return self.head(self.norm(self.conv(x)).mean((2, 3)))"


@pytest.fixture
def model_file(tmp_path: Path) -> Callable[..., str]:
    """`model_file("return ...")`: path of a model with this body of forward()."""

    def write(forward: str = SOUND, at: str | None = "norm") -> str:
        path = tmp_path / "mine.py"
        body = "\n".join(f"        {line}" for line in forward.splitlines())
        path.write_text(MODEL.format(forward=body, at=at))
        return str(path)

    return write
