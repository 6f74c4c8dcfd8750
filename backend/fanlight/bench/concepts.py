"""Concepts: how fast 112 concepts and 200 classes follow an answer, alone, with twenty people dragging, and in a browser.

The model has random weights, a covariance of its own for each picture, a linear head and 100 draws. Answers are timed as a client on a kept
connection gets them, so HTTP is in them. A person who drags sends a change every 100 ms, whether or not the last one was answered; of a session
only the latest is, the others are dropped. In Chromium: from the key on a bar until its new value is painted.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fanlight.bench import _api
from fanlight.bench._browser import Tab, chromium
from fanlight.bench._figures import Declared, figures, passed, percentile
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._server import Server, fanlight
from fanlight.bench._wire import Wire
from fanlight.cli.output import say

CONCEPTS, CLASSES, MOST = 112, 200, 7
EVERY = 0.1  # seconds between the changes of somebody who drags
FIGURES = {
    "answer_p50": Declared(measures="One to seven answers recomputed, median", unit="ms"),
    "answer_p95": Declared(measures="One to seven answers recomputed, 95th percentile", unit="ms", at_most=20),
    "question_p95": Declared(measures="The next question, 95th percentile", unit="ms", at_most=100),
    "crowd_p95": Declared(
        measures="Twenty people dragging, 95th percentile of what is answered", unit="ms", at_most=250
    ),
    "crowd_rate": Declared(measures="Twenty people dragging, answers", unit="/s"),
    "crowd_dropped": Declared(measures="Twenty people dragging, stale changes dropped", unit="%"),
    "paint_p95": Declared(measures="Key on a bar to painted, 95th percentile", unit="ms", at_most=100),
    "weight": Declared(measures="An answer on the wire", unit="kB"),
}
PACKAGES = ("fanlight", "torch", "dash", "fastapi")
DRAG = """async ([row, key]) => {
  const bar = document.querySelectorAll('#co-rows .co-bar')[row], before = bar.getAttribute('aria-valuenow'), t = performance.now();
  bar.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  while (bar.getAttribute('aria-valuenow') === before) await new Promise((r) => requestAnimationFrame(r));
  await new Promise((r) => requestAnimationFrame(r));
  return performance.now() - t;
}"""
Found = dict[str, list[float]]


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rounds N, --edits N (of each kind and round), --people N, --seconds S (of dragging a round), --threads N, --no-browser."""
    chosen = _options(options)
    about: dict[str, Any] = {
        "benchmark": "concepts",
        "date": today(),
        "machine": machine(),
        "versions": versions(PACKAGES),
        "options": vars(chosen),
    }
    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="fanlight-bench-") as name:
        folder = Path(name)
        say(f"Making a bottleneck of {CONCEPTS} concepts and {CLASSES} classes.")
        start = fanlight(
            folder, models=write(folder / "large"), default_model=False, examples=False, threads=chosen.threads
        )
        with start as server:
            record = _explained(server)
            for n in range(chosen.rounds):
                _answers(found, server, record, chosen.edits, n)
                asyncio.run(_crowd(found, server, record, chosen.people, chosen.seconds))
                say(f"round {n + 1}: " + ", ".join(f"{k} {v[-1]:.1f}" for k, v in found.items()))
            if chosen.browser:
                _painted(found, server, record, chosen)
    made = figures(FIGURES, found)
    return {**about, **made, "passed": passed(made)}


def write(folder: Path) -> Path:
    """A bundle with random weights."""
    import torch

    from fanlight_models.concepts import build, bundle

    encoder = {"kind": "plain-cnn", "widths": [8, 16], "depth": 1, "width": 64}
    config = {"kind": "scbm", "covariance": "amortized", "concepts": CONCEPTS, "classes": CLASSES, "encoder": encoder}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build(config)
        with torch.no_grad():
            for name, values in model.named_parameters():
                if name == "spread.linear.bias":  # else hardly anything correlates
                    values.normal_(std=0.2)
        cases, labels = torch.rand(1000, CONCEPTS), torch.randint(0, CLASSES, (1000,))
    bundle.write(
        folder,
        model,
        config,
        name="large",
        description="Random weights.",
        terms="",
        concepts=[f"concept {k}" for k in range(CONCEPTS)],
        classes=[f"class {c}" for c in range(CLASSES)],
        preprocessing={"size": [112, 112]},
        card="",
        cases=cases,
        labels=labels,
    )
    return folder


def _explained(server: Server) -> str:
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (7, 7, 3), dtype=np.uint8).repeat(16, 0).repeat(16, 1)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    with _api.client(server) as http:
        body = {"model": "large", "input": _api.upload(http, ("noise.png", out.getvalue())), "explainer": "scbm"}
        _, answer = _api.timed(http, "POST", "/explanations", 200, params={"wait": 30}, json=body)
        return str(answer.json()["id"])


def _change(n: int) -> list[dict[str, Any]]:
    """One to seven answers, another list for every n."""
    return [
        {"set_concept": {"concept": (n * 31 + 17 * i) % CONCEPTS, "value": "yes" if (n + i) % 3 else "no"}}
        for i in range(1 + n % MOST)
    ]


def _answers(found: Found, server: Server, record: str, count: int, turn: int) -> None:
    """One after the other on a kept connection."""
    with _api.client(server) as http:

        def ask(seq: int, **more: Any) -> float:
            body = {"session": f"alone {turn}", "explanation": record, "edits": _change(seq), "seq": seq, **more}
            took, answer = _api.timed(http, "POST", "/live", 200, json=body)
            found["weight"] = [max(len(answer.content) / 1000, *found["weight"] or [0.0])]
            return 1000 * took

        for seq in range(5):
            ask(seq)
        took = [ask(5 + n) for n in range(count)]
        asked = [ask(5 + count + n, suggest=True) for n in range(count // 3)]
    found["answer_p50"].append(percentile(took, 50))
    found["answer_p95"].append(percentile(took, 95))
    found["question_p95"].append(percentile(asked, 95))


async def _crowd(found: Found, server: Server, record: str, people: int, seconds: float) -> None:
    took: list[float] = []
    dropped = 0
    async with Wire(server.url + _api.BASE, server.headers) as http:

        async def change(session: str, seq: int) -> None:
            nonlocal dropped
            body = {"session": session, "explanation": record, "edits": _change(seq), "seq": seq}
            began = time.perf_counter()
            answer = await http.post("/live", json=body)
            if answer.status_code == 409:
                dropped += 1
                return
            _api.check(answer, 200)
            took.append(1000 * (time.perf_counter() - began))

        async def drag(n: int) -> None:
            await asyncio.sleep(EVERY * n / people)
            session, sent = f"person {n} {time.time()}", []
            for seq in range(int(seconds / EVERY)):
                sent.append(asyncio.create_task(change(session, seq)))
                await asyncio.sleep(EVERY)
            await asyncio.gather(*sent)

        began = time.perf_counter()
        await asyncio.gather(*(drag(n) for n in range(people)))
        lasted = time.perf_counter() - began
    found["crowd_p95"].append(percentile(took, 95))
    found["crowd_rate"].append(len(took) / lasted)
    found["crowd_dropped"].append(100 * dropped / (dropped + len(took)))


def _painted(found: Found, server: Server, record: str, chosen: argparse.Namespace) -> None:
    with chromium() as browser, Tab(browser) as tab:
        tab.page.goto(server.path(f"/e/{record}/concepts"))
        tab.page.wait_for_selector(".co-asked li")
        for _ in range(chosen.rounds):
            took = []
            for n in range(chosen.edits // 2):
                took.append(float(tab.page.evaluate(DRAG, [n % 6, "PageUp" if n // 6 % 2 else "PageDown"])))
                tab.page.wait_for_timeout(20)
            found["paint_p95"].append(percentile(took[2:], 95))
        say(f"painted in {found['paint_p95'][-1]:.0f} ms (p95)")


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench concepts --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edits", type=int, default=90)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-browser", dest="browser", action="store_false")
    return parser.parse_args(list(options))
