"""Ray: throughput of bulk attribution on 1, 2 and 4 replicas, and what an explanation costs more there than in one local worker.

Both sides are asked through the engine's seam, without HTTP and database: the same model, method and pictures, one thread each. On a machine with
fewer cores than replicas the shape of the overhead is seen, not a speed-up.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fanlight import bundles
from fanlight.bench._figures import Declared, figures, passed, percentile, ratios
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._processes import memory, tree
from fanlight.blobs import Blobs
from fanlight.cli.output import say
from fanlight.engine.base import BULK, INTERACTIVE, Engine, Work
from fanlight.engine.cluster import Plan, Pool
from fanlight.engine.local import ProcessEngine
from fanlight.engine.ray import RayEngine
from fanlight.errors import FanlightError
from fanlight.explainers.registry import find
from fanlight.images import encode

REPLICAS = (1, 2, 4)
FIGURES = {
    "local": Declared(measures="One local worker", unit="maps/s"),
    **{f"replicas_{n}": Declared(measures=f"Ray, replicas for sweeps: {n}", unit="maps/s") for n in REPLICAS},
    **{f"share_{n}": Declared(measures=f"Replicas: {n}, over the local worker") for n in REPLICAS},
    "alone_local": Declared(measures="One explanation after the other, local", unit="ms"),
    "alone_ray": Declared(measures="The same on Ray", unit="ms"),
    "overhead": Declared(measures="Overhead of Ray per explanation, median", unit="ms", at_most=10),
    "overhead_p95": Declared(
        measures="Overhead of Ray per explanation, 95th percentile less the local median", unit="ms"
    ),
    "start": Declared(measures="From nothing to the first replica's answer", unit="s"),
    "memory": Declared(measures="Memory of Ray beside the compute workers, one replica in each pool", unit="MB"),
}
TINY = '''"""A network whose explanation takes a few milliseconds, so that what is around it is seen."""
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

def load():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    return TorchImageClassifier(net, classes=["one", "two", "three"], preprocessing=Preprocessing(size=(32, 32)))
'''
Found = dict[str, list[float]]


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rounds N, --maps N (of each round and number of replicas), --alone N (explanations one after the other)."""
    chosen = _options(options)
    about: dict[str, Any] = {"benchmark": "scaling", "date": today(), "machine": machine()}
    about |= {"versions": versions(("fanlight", "ray", "torch")), "options": vars(chosen)}
    with tempfile.TemporaryDirectory(prefix="fanlight-scaling-") as folder:
        with contextlib.redirect_stdout(sys.stderr):  # Ray prints what it has to say among the figures
            found = asyncio.run(_measured(Path(folder), chosen))
    cores = about["machine"].cores
    remarks = {f"replicas_{n}": f"{n} workers on {cores} cores." for n in REPLICAS if n > cores}
    made = figures(FIGURES, found, remarks)
    return {**about, **made, "passed": passed(made)}


async def _measured(folder: Path, chosen: argparse.Namespace) -> Found:
    found: Found = defaultdict(list)
    tiny = folder / "tiny.py"
    tiny.write_text(TINY)
    asker = Asker(folder, {"bundle": str(bundles.folder() / bundles.DEFAULT)}, {"file": str(tiny)})
    async with _running(ProcessEngine(asker.config)) as local:
        await asker.know(local)
        await asker.maps(local, chosen.maps)  # loads the model
        for n in REPLICAS:
            began = time.monotonic()
            async with _running(RayEngine(asker.config, Plan(bulk=Pool(n, n)))) as ray:
                await ray.describe(asker.tiny)
                if n == 1:
                    found["start"].append(time.monotonic() - began)
                await asker.maps(ray, chosen.maps)
                beside = []
                for _ in range(chosen.rounds):
                    beside.append(await asker.maps(local, chosen.maps))
                    found[f"replicas_{n}"].append(await asker.maps(ray, chosen.maps))
                    say(f"{n} replicas: {found[f'replicas_{n}'][-1]:.1f} maps/s, local {beside[-1]:.1f}")
                found["local"] += beside
                found[f"share_{n}"] = ratios(found[f"replicas_{n}"], beside)
                if n == 1:
                    found["memory"].append(_memory() / 1e6)
                    await _compare(asker, local, ray, found, chosen)
    return found


async def _compare(asker: Asker, local: Engine, ray: Engine, found: Found, chosen: argparse.Namespace) -> None:
    """One explanation at a time, the two sides in turn."""
    for engine in (local, ray):
        for _ in range(10):
            await asker.alone(engine)
    for _ in range(chosen.rounds):
        sides: dict[str, list[float]] = {"local": [], "ray": []}
        for _ in range(chosen.alone):
            for name, engine in (("local", local), ("ray", ray)):
                sides[name].append(1000 * await asker.alone(engine))
        medians = {name: percentile(times, 50) for name, times in sides.items()}
        found["alone_local"].append(medians["local"])
        found["alone_ray"].append(medians["ray"])
        found["overhead"].append(medians["ray"] - medians["local"])
        found["overhead_p95"].append(percentile(sides["ray"], 95) - medians["local"])
        say(f"one after the other: local {medians['local']:.2f} ms, Ray {medians['ray']:.2f} ms")


class Asker:
    """Pictures and work. Args: folder: of the artifacts; large, tiny: sources of the two models."""

    def __init__(self, folder: Path, large: dict[str, str], tiny: dict[str, str]):
        self.config = {"artifacts": str(folder / "artifacts"), "device": "cpu", "threads": 1, "explainers": ()}
        self.large, self.tiny = large, tiny
        self._blobs = Blobs(str(folder / "artifacts"))
        self._numbers = itertools.count()
        self._models: dict[str, dict[str, Any]] = {}

    async def know(self, engine: Engine) -> None:
        for name, source in (("large", self.large), ("tiny", self.tiny)):
            said = await engine.describe(source)
            self._models[name] = {"id": name, "source": source, **{k: said[k] for k in ("digest", "size")}}

    def _work(self, model: str, priority: Any) -> Work:
        number = next(self._numbers)
        size = self._models[model]["size"]
        pixels = np.random.default_rng(number).integers(0, 255, (*size, 3), dtype=np.uint8)
        method = find("saliency")
        return Work(
            job=f"job {number}", attempt=1, kind="explain", model=self._models[model], input=self._blobs.put(encode(pixels)),
            explainer=method.name, version=method.version, params=method.Params().model_dump(mode="json"), target=None, seed=0,
            numerics="f32/deterministic", priority=priority,
        )  # fmt: skip

    async def maps(self, engine: Engine, count: int) -> float:
        """Maps per second of `count` pictures that nobody asked about, all submitted at once as a sweep's are."""
        works = [self._work("large", BULK) for _ in range(count)]
        began = time.monotonic()
        await asyncio.gather(*(_done(engine, w) for w in works))
        return count / (time.monotonic() - began)

    async def alone(self, engine: Engine) -> float:
        """Seconds of one explanation by the small model."""
        work = self._work("tiny", INTERACTIVE)
        began = time.monotonic()
        await _done(engine, work)
        return time.monotonic() - began


async def _done(engine: Engine, work: Work) -> None:
    async for event in (await engine.submit(work)).events():
        if event.last and event.kind != "done":
            raise FanlightError(f"A job of the benchmark {event.kind}: {event.data}", code="benchmark")


@asynccontextmanager
async def _running(engine: Any) -> AsyncIterator[Any]:
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


def _memory() -> float:
    """Bytes of what Ray started from here, shared pages divided among those who share them; without the compute workers."""
    family = [pid for pid in tree(os.getpid()) if pid != os.getpid()]
    compute = [pid for pid in family if b"fanlight.engine.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return float(sum(memory(pid)[1] for pid in set(family) - set(compute)))


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench scaling --")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--maps", type=int, default=64)
    parser.add_argument("--alone", type=int, default=100)
    return parser.parse_args(list(options))
