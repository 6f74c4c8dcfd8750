"""Prototypes: memory and time of the matcher beside all similarities at once, and how fast 2,000 prototypes of 200 classes open and change.

The matcher: one step of training (forward and backward) on the tokens of a DeiT-Tiny, each side in a process of its own, in turn. Edits: as a
client on a kept connection gets them, so HTTP is in them; and in Chromium from the click until the row is painted.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fanlight.bench import _matcher
from fanlight.bench._browser import Tab, chromium
from fanlight.bench._figures import Declared, figures, passed, percentile, ratios
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._server import Server, fanlight
from fanlight.cli.output import say
from fanlight.errors import FanlightError

FIGURES = {
    "memory_ours": Declared(measures="Peak memory of a step, ours", unit="MB"),
    "memory_naive": Declared(measures="Peak memory of a step, all similarities at once", unit="MB"),
    "memory_ratio": Declared(measures="Memory: all at once over ours", at_least=4.0),
    "step_ours": Declared(measures="A step, ours", unit="s"),
    "step_naive": Declared(measures="A step, all similarities at once", unit="s"),
    "step_ratio": Declared(measures="Time: ours over all at once", at_most=1.0),
    "open": Declared(measures="Opening the page of a record until its rows are painted", unit="ms", at_most=1500),
    "edit_p95": Declared(measures="Muting, gating, why not: 95th percentile of the answer", unit="ms", at_most=30),
    "again_p95": Declared(measures="Removing a part: 95th percentile of the answer", unit="ms", at_most=30),
    "exclude_p95": Declared(measures="Excluding a place: 95th percentile of the answer", unit="ms", at_most=100),
    "paint_p95": Declared(measures="Click to painted: 95th percentile", unit="ms", at_most=100),
    "weight": Declared(measures="An answer on the wire", unit="kB"),
}
PACKAGES = ("fanlight", "torch", "dash", "fastapi")
TOGGLE = """async (row) => {
  const node = document.querySelectorAll('[data-pt="rows"] .pt-row')[row], before = node.classList.contains('muted'), t = performance.now();
  node.querySelector('[data-do="mute"]').click();
  while (node.classList.contains('muted') === before) await new Promise((r) => requestAnimationFrame(r));
  return performance.now() - t;
}"""
Found = dict[str, list[float]]


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rounds N, --edits N (of each kind and round), --batch N, --prototypes N, --threads N, --no-matcher, --no-pages."""
    chosen = _options(options)
    about: dict[str, Any] = {
        "benchmark": "prototypes",
        "date": today(),
        "machine": machine(),
        "versions": versions(PACKAGES),
    }
    about["options"] = vars(chosen)
    found: Found = defaultdict(list)
    if chosen.matcher:
        _matching(found, chosen)
    if chosen.pages:
        with tempfile.TemporaryDirectory(prefix="fanlight-bench-") as name:
            _pages(found, Path(name), chosen)
    made = figures(FIGURES, found)
    return {**about, **made, "passed": passed(made)}


def _matching(found: Found, chosen: argparse.Namespace) -> None:
    for n in range(chosen.rounds):
        for side in ("ours", "naive"):
            got = _matcher.measured(side, chosen.batch, chosen.prototypes, chosen.threads)
            found[f"memory_{side}"].append(got["mb"])
            found[f"step_{side}"].append(got["seconds"])
            say(f"round {n + 1}, {side}: {got['seconds']:.2f} s, {got['mb']:.0f} MB")
    found["memory_ratio"] = ratios(found["memory_naive"], found["memory_ours"])
    found["step_ratio"] = ratios(found["step_ours"], found["step_naive"])


def _pages(found: Found, folder: Path, chosen: argparse.Namespace) -> None:
    from fanlight.bench import _large

    say("Making a model of 2,000 prototypes.")
    model = _large.write(folder / "large")
    start = fanlight(folder, models=model, default_model=False, examples=False, threads=chosen.threads)
    with start as server, chromium() as browser:
        record = _explained(server)
        for n in range(chosen.rounds):
            _edits(found, server, record, chosen.edits)
            with Tab(browser) as tab:
                tab.page.goto(server.path("/settings"))  # the frame and its scripts are there
                tab.page.wait_for_selector("main")
                began = time.perf_counter()
                tab.page.goto(f"{server.url}/e/{record}/prototypes")
                tab.page.wait_for_selector('[data-pt="rows"] .pt-row')
                found["open"].append(1000 * (time.perf_counter() - began))
                took = [tab.page.evaluate(TOGGLE, i % 8) for i in range(chosen.edits)]
                found["paint_p95"].append(percentile(took[2:], 95))
            say(
                f"round {n + 1}: opened in {found['open'][-1]:.0f} ms, painted in {found['paint_p95'][-1]:.0f} ms (p95)"
            )


def _explained(server: Server) -> str:
    """A record of the large model."""
    import httpx
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (7, 7, 3), dtype=np.uint8).repeat(40, 0).repeat(40, 1)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    with httpx.Client(base_url=f"{server.url}/api/v1", headers=server.headers, timeout=120, trust_env=False) as http:
        source = http.post("/inputs", files={"file": ("noise.png", out.getvalue())}).json()["id"]
        body = {"model": "large", "input": source, "explainer": "protovit"}
        answer = http.post("/explanations", params={"wait": 30}, json=body).json()
    if answer.get("state") != "succeeded":
        raise FanlightError(f"The large model could not be explained: {answer}", code="job_failed")
    return str(answer["id"])


def _edits(found: Found, server: Server, record: str, count: int) -> None:
    """Times of answers, one after the other on a kept connection."""
    import httpx

    with httpx.Client(base_url=f"{server.url}/api/v1", headers=server.headers, timeout=60, trust_env=False) as http:
        seq = int(1000 * time.time())

        def ask(*edits: dict[str, Any]) -> float:
            nonlocal seq
            seq += 1
            body = {"session": "benchmark", "explanation": record, "edits": list(edits), "seq": seq}
            began = time.perf_counter()
            answer = http.post("/live", json=body)
            took = 1000 * (time.perf_counter() - began)
            if answer.status_code != 200:
                raise FanlightError(f"An edit was refused: {answer.text[:300]}", code="job_failed")
            found["weight"] = [max(len(answer.content) / 1000, *found["weight"] or [0.0])]
            return took

        ask({"mute_prototype": 0})
        kinds: dict[str, list[list[dict[str, Any]]]] = {
            "edit_p95": [_small(i) for i in range(count)],
            "again_p95": [[{"remove_part": [i * 13 % 2000, i % 3]}] for i in range(count)],
            "exclude_p95": [[{"exclude_region": [i % 200, i % 150, i % 200 + 40, i % 150 + 40]}] for i in range(count)],
        }
        for name, lists in kinds.items():
            found[name].append(percentile([ask(*edits) for edits in lists], 95))
        say(", ".join(f"{name.removesuffix('_p95')} {found[name][-1]:.0f} ms" for name in kinds))


def _small(i: int) -> list[dict[str, Any]]:
    """Edits that are sums; every fifth time with the rows of another class."""
    edits: list[dict[str, Any]] = [{"mute_prototype": i * 7 % 2000}, {"gate_part": [i * 11 % 2000, i % 3]}]
    return [*edits, {"why_not": i % 200}] if i % 5 == 0 else edits


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench prototypes --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edits", type=int, default=60)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--prototypes", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-matcher", dest="matcher", action="store_false")
    parser.add_argument("--no-pages", dest="pages", action="store_false")
    return parser.parse_args(list(options))
