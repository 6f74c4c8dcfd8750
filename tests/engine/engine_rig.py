"""A tiny model in a Python file that misbehaves on request, and what it takes to have it explained."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fanlight.blobs import Blobs
from fanlight.engine.base import Engine, Event, Work
from fanlight.engine.execute import Config, Execution
from fanlight.engine.inline import InlineEngine
from fanlight.engine.local import ProcessEngine, ThreadEngine
from fanlight.explainers.registry import find
from fanlight.images import encode

CALM, RAISE, NAN, TRAIN, EXIT, HANG, LEAVE, SLOW, SEIZE, SHAPE, ASSERT = 200, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100
"""What the red of a picture's first pixel asks of the model."""

MODEL = '''"""A small model for tests; the red of the first pixel says how it behaves."""
import os, re, sys, time
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 3)
        self.head.weight.data *= 20
    def forward(self, x):
        moods = set((x[:, 0, 0, 0].detach() * 255).round().int().tolist())
        out = self.head(self.features(x).mean((2, 3)))
        if 10 in moods: raise RuntimeError("this model cannot see this")
        if 20 in moods: return out * float("nan")
        if 30 in moods: self.train()
        if 40 in moods: os._exit(7)
        if 50 in moods: time.sleep(600)
        if 60 in moods: sys.exit("enough")
        if 70 in moods: time.sleep(0.1)
        if 80 in moods: re.match("(a+)+$", "a" * 60 + "b")  # does not let go of the interpreter
        if 90 in moods: return out[:, :2]
        if 100 in moods: raise RuntimeError("CUDA error: device-side assert triggered")
        return out

def load():
    return TorchImageClassifier(Net(), classes=["one", "two", "three"], preprocessing=Preprocessing(size=(32, 32)), features_at="features")
'''

ON_RAY = (pytest.mark.slow, pytest.mark.filterwarnings("ignore"))  # Ray's own code uses what its libraries deprecate
KINDS = ("inline", "thread", "process", pytest.param("ray", marks=ON_RAY))

RIGS = itertools.count()


def on_ray(config: Config, **options: Any) -> Engine:
    from fanlight.engine.cluster import Plan
    from fanlight.engine.ray import RayEngine

    return RayEngine(asdict(config), Plan(**{"address": "auto", "cpus": 0.25, **options}))


class Rig:
    """An engine with its event loop, its store and the tiny model.

    Args:
        kind: inline | thread | process | ray, the latter in a cluster that runs (`cluster` in conftest.py), or with `plan` as that says.
        device: cpu or cuda.
        explainers: files of further ones.
    """

    def __init__(
        self, kind: str, folder: Path, *, device: str = "cpu", explainers: tuple[str, ...] = (), **options: Any
    ):
        self.kind, self.folder = kind, folder
        self.path = folder / "tiny.py"
        self.path.write_text(MODEL)
        self.source = {"file": str(self.path)}
        self.blobs = Blobs(str(folder / "blobs"))
        self.loop = asyncio.new_event_loop()
        config = Config(artifacts=str(folder / "blobs"), device=device, threads=1, explainers=explainers)
        made: dict[str, Callable[[], Engine]] = {
            "inline": lambda: InlineEngine(lambda: Execution(config, self.blobs)),
            "thread": lambda: ThreadEngine(lambda: Execution(config, self.blobs)),
            "process": lambda: ProcessEngine(config, **options),
            "ray": lambda: on_ray(config, **options),
        }
        self.engine: Any = None
        self.made = made[kind]
        self.jobs = 1000 * next(RIGS)  # rigs on one cluster share what its replicas remember of a picture

    def start(self, seconds: float = 60) -> Rig:
        async def begin() -> None:
            self.engine = self.made()
            await self.engine.start()
            self.model = {"id": "tiny", **await self.engine.describe(self.source), "source": self.source}

        self.run(begin(), seconds)
        return self

    def stop(self) -> None:
        self.run(self.engine.close())
        self.loop.close()

    def run(self, coroutine: Coroutine[Any, Any, Any], seconds: float = 60) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, seconds))

    def picture(self, seed: int = 0, mood: int = CALM) -> str:
        """Digest of stored noise, 32 by 32."""
        pixels = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        pixels[0, 0, 0] = mood
        return self.blobs.put(encode(pixels))

    def work(
        self, picture: str | None = None, explainer: str = "saliency", *, mood: int = CALM, seed: int = 0, **fields: Any
    ) -> Work:
        self.jobs += 1
        method = find(explainer)
        params = method.Params(**fields.pop("params", {})).model_dump(mode="json")
        base = {
            "job": f"job {self.jobs}", "attempt": 1, "kind": "explain", "input": picture or self.picture(mood=mood),
            "model": {k: self.model[k] for k in ("id", "digest", "source", "size")}, "explainer": explainer, "version": method.version,
            "params": params, "target": None, "seed": seed, "numerics": "f32/deterministic",
        }  # fmt: skip
        return Work(**{**base, **fields})

    def slow(self, **fields: Any) -> Work:
        """About a second of steps, of a picture of its own."""
        picture = self.picture(1000 + self.jobs, SLOW)
        return self.work(picture, "occlusion", params={"window": 4, "stride": 4}, **fields)

    async def events(self, work: Work) -> list[Event]:
        return [e async for e in (await self.engine.submit(work)).events()]

    async def together(self, *works: Work) -> list[list[Event]]:
        return list(await asyncio.gather(*map(self.events, works)))

    def last(self, *works: Work) -> Any:
        """The last event of one, or of each of several submitted at once."""
        ends = [events[-1] for events in self.run(self.together(*works))]
        return ends[0] if len(works) == 1 else ends
