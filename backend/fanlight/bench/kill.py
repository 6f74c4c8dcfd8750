"""What survives kill -9: a server under load is killed at many moments, started again, and held to all that it had promised.

Half of the kills hit the whole process group, half the server alone. A third come at a random moment, a third when a file appears among
the artifacts, a third when the database is being written.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from fanlight.bench._figures import Declared, figures, passed
from fanlight.bench._history import PROMISED, History, load, settle
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._server import Server, fanlight

FIGURES = {
    "kills": Declared(measures="Kills"),
    "accepted": Declared(measures="Promised explanations (202)"),
    "unfinished": Declared(measures="Of them unfinished at a kill"),
    "restart": Declared(measures="From the kill to the next server's readiness", unit="s"),
    "leftovers": Declared(measures="Files of interrupted puts, never visible"),
    "lost": Declared(measures="Promises lost", at_most=0),
    "failed": Declared(measures="Promises that ended without a result", at_most=0),
    "doubled": Declared(measures="Requests computed twice to effect", at_most=0),
    "changed": Declared(measures="Results that changed", at_most=0),
    "partial": Declared(measures="Artifacts incomplete or damaged", at_most=0),
    "refused": Declared(measures="Requests answered with an error", at_most=0),
    "corrupt": Declared(measures="Damage in the database", at_most=0),
}
TINY = '''"""A small network whose passes take a few milliseconds."""
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
        time.sleep(0.004)
        return self.head(self.features(x).mean((2, 3)))

def load():
    return TorchImageClassifier(Net(), classes=["one", "two", "three"], preprocessing=Preprocessing(size=(32, 32)))
'''
MODELS = ("tiny", "efficientnet-lite0")
METHODS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "tiny": (("saliency", {}), ("random", {}), ("occlusion", {"window": 4, "stride": 4})),
    "efficientnet-lite0": (("saliency", {}), ("random", {}), ("occlusion", {"window": 64, "stride": 56})),
}
PICTURES, CLIENTS = 6, 3
MOMENTS = ("time", "artifact", "database")


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --points N (kills), --model tiny|efficientnet-lite0, --seed N, --patience S (for a promise after a restart)."""
    chosen = _options(options)
    about: dict[str, Any] = {"benchmark": "kill", "date": today(), "machine": machine()}
    about |= {"versions": versions(("fanlight", "torch", "sqlalchemy", "obstore")), "options": vars(chosen)}
    with tempfile.TemporaryDirectory(prefix="fanlight-kill-") as folder:
        found = campaign(Path(folder), chosen.points, chosen.model, chosen.seed, chosen.patience)
    history: History = found.pop("history")
    measured = {**found, **{p: [history.problems[p]] for p in PROMISED}, "accepted": [len(history.accepted)]}
    filled = figures(FIGURES, measured)
    return {**about, **filled, "remarks": history.remarks, "passed": passed(filled)}


def campaign(folder: Path, points: int, model: str = "tiny", seed: int = 0, patience: float = 120) -> dict[str, Any]:
    """Kills a server `points` times. Returns measured figures and, as "history", what the clients saw."""
    rng = random.Random(seed)
    history = History()
    measured: dict[str, Any] = {"unfinished": [], "restart": []}
    tiny = folder / "tiny.py"
    tiny.write_text(TINY)
    settings: dict[str, Any] = {
        "models": tiny,
        "default_model": model != "tiny",
        "trust": "request",
        "examples": False,
        "threads": 1,
    }
    pending: list[str] = []
    killed = 0.0
    for point in range(points + 1):
        with fanlight(folder, **settings) as server, _api(server) as http:
            if killed:
                measured["restart"].append(time.monotonic() - killed)
            inputs = [_upload(http, n) for n in range(PICTURES)]
            settle(http, history, pending, patience)
            if point == points:
                break
            known = set(history.accepted)
            with _clients(server, history, partial(_draw, model, inputs), seed + point):
                _wait(MOMENTS[point % len(MOMENTS)], folder / "data", rng)
                measured["unfinished"].append(len(history.unfinished))
                _kill(server, group=bool(point // len(MOMENTS) % 2))
                killed = time.monotonic()
            pending = [i for i in history.accepted if i not in known]
    measured |= {"kills": [points], "leftovers": [_leftovers(folder)], "corrupt": [_examine(folder, history)]}
    return {**measured, "history": history}


def _draw(model: str, inputs: Sequence[str], rng: random.Random) -> dict[str, Any]:
    method, params = rng.choice(METHODS[model])
    return {
        "model": model,
        "input": rng.choice(inputs),
        "explainer": method,
        "params": params,
        "seed": rng.randrange(2**31),
    }


def _upload(http: httpx.Client, number: int) -> str:
    pixels = np.random.default_rng(number).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    answer = http.post("/inputs", files={"file": (f"{number}.png", out.getvalue())})
    answer.raise_for_status()
    return str(answer.json()["id"])


def _api(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url + "/api/v1", headers=server.headers, timeout=60, trust_env=False)


@contextlib.contextmanager
def _clients(
    server: Server, history: History, draw: Callable[[random.Random], dict[str, Any]], seed: int
) -> Iterator[None]:
    """Clients at work until the server is gone."""

    def work(number: int) -> None:
        with _api(server) as http:
            load(http, history, draw, 1000 * seed + number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def _wait(moment: str, data: Path, rng: random.Random) -> None:
    """Until the kill: up to two seconds, and then until something is written where the moment asks for it, give or take a millisecond."""
    time.sleep(rng.uniform(0.1, 2))
    if moment == "time":
        return
    write_ahead = data / "fanlight.sqlite-wal"

    def state() -> object:
        if moment == "database":
            return write_ahead.stat().st_mtime_ns
        return sum(len(files) for _, _, files in os.walk(data / "artifacts"))

    before, end = state(), time.monotonic() + 5
    while state() == before and time.monotonic() < end:
        time.sleep(0.0002)
    time.sleep(rng.choice((0, rng.uniform(0, 0.003))))


def _kill(server: Server, *, group: bool) -> None:
    if group:
        os.killpg(server.pid, signal.SIGKILL)
    else:
        os.kill(server.pid, signal.SIGKILL)
    server.process.wait()


def _leftovers(folder: Path) -> int:
    return sum("#" in p.name for p in (folder / "data" / "artifacts").rglob("*"))


def _examine(folder: Path, history: History) -> int:
    """The file itself: sound, and no job ended well twice. Returns what SQLite finds wrong."""
    with contextlib.closing(sqlite3.connect(folder / "data" / "fanlight.sqlite")) as db:
        twice = """select json_extract(data, '$.id'), count(*) from event
            where json_extract(data, '$.type') = 'job' and json_extract(data, '$.state') = 'succeeded'
            group by 1 having count(*) > 1"""
        for job, times in db.execute(twice):
            history.problem("doubled", f"job {job} ended {times} times")
        wrong = [row[0] for row in db.execute("pragma integrity_check")] + list(db.execute("pragma foreign_key_check"))
    return len([w for w in wrong if w != "ok"])


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench kill --", description=__doc__)
    parser.add_argument("--points", type=int, default=50, help="kills")
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for a promise after a restart")
    return parser.parse_args(given)
