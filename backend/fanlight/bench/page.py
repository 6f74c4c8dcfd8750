"""Fanlight in Chromium beside a one-file Gradio application around Captum: time to a painted map, memory, weight.

Both are driven as a person drives them, in turn, on the same pictures, with the same network and the same number of passes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fanlight.bench import _api, _pictures, _sides
from fanlight.bench._browser import Tab, chromium, strangers
from fanlight.bench._figures import Declared, figures, passed, ratios
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._processes import Peak
from fanlight.bench._server import Server, fanlight, free_port, program
from fanlight.cli.output import say
from fanlight.errors import FanlightError

SHORT = {"Saliency": "saliency", "Integrated Gradients": "ig50", "Occlusion": "occlusion"}
TOLD = {"Saliency": "Saliency", "Integrated Gradients": "IG, 50 steps", "Occlusion": "Occlusion, 8 x 8 windows"}
GIB = 2.0**30
MEGA = 1e6

FIGURES = {
    **{
        f"{short}_{name}": declared
        for method, short in SHORT.items()
        for name, declared in {
            "fanlight": Declared(measures=f"{TOLD[method]}: upload to painted, Fanlight", unit="s"),
            "gradio": Declared(measures=f"{TOLD[method]}: upload to painted, Gradio", unit="s"),
            "ratio": Declared(measures=f"{TOLD[method]}: Fanlight over Gradio", at_most=1.0),
            "click_fanlight": Declared(measures=f"{TOLD[method]}: Explain to painted, Fanlight", unit="s"),
            "click_gradio": Declared(measures=f"{TOLD[method]}: Explain to painted, Gradio", unit="s"),
        }.items()
    },
    "neighbour_fanlight": Declared(
        measures="Somebody's Saliency while an occlusion runs: Explain to painted, Fanlight", unit="s", at_most=1.0
    ),
    "neighbour_gradio": Declared(
        measures="Somebody's Saliency while an occlusion runs: Explain to painted, Gradio", unit="s"
    ),
    "pss_fanlight": Declared(
        measures="Peak memory of the server and its worker (PSS), Fanlight", unit="GiB", at_most=1.0
    ),
    "rss_fanlight": Declared(measures="Peak memory, sum of RSS (shared pages counted twice), Fanlight", unit="GiB"),
    "pss_gradio": Declared(measures="Peak memory (PSS), Gradio", unit="GiB"),
    "rss_gradio": Declared(measures="Peak memory, sum of RSS, Gradio", unit="GiB"),
    "weight_first": Declared(measures="First page on the wire, Fanlight", unit="MB", at_most=1.5),
    "weight_explain": Declared(measures="Workbench as the first page, on the wire, Fanlight", unit="MB", at_most=1.5),
    "weight_gradio": Declared(measures="First page on the wire, Gradio", unit="MB"),
    "plotly": Declared(measures="Plotly files loaded by pages without a plot, Fanlight", at_most=0),
    "strangers_fanlight": Declared(measures="Requests to other hosts, Fanlight", at_most=0),
    "strangers_gradio": Declared(measures="Requests to other hosts, Gradio"),
}
PACKAGES = ("fanlight", "torch", "dash", "gradio", "captum", "playwright")
Found = dict[str, list[float]]


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rounds N, --neighbours N (rounds of the second person), --methods saliency,ig50,occlusion, --no-gradio,
    --channels-last (Captum's network in Fanlight's memory layout), --trust request (no trust records in the background)."""
    chosen = _options(options)
    about: dict[str, Any] = {"benchmark": "page", "date": today(), "machine": machine(), "versions": versions(PACKAGES)}
    about["options"] = vars(chosen)
    found: Found = defaultdict(list)
    remarks: dict[str, str] = {}
    methods = [m for m, short in SHORT.items() if short in chosen.methods.split(",")]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fanlight-bench-")))
        pictures = _files(folder)
        layout = ["--channels-last"] if chosen.channels_last else []
        if chosen.gradio:
            say("Looking for the batch sizes that are fastest in Captum here.")
            batches = json.loads(_tune(layout))
            remarks["ig50_gradio"] = f"internal_batch_size={batches['ig_batch']}, the fastest here."
            remarks["occlusion_gradio"] = f"perturbations_per_eval={batches['occlusion_batch']}, the fastest here."
            remarks["neighbour_gradio"] = "Gradio's default queue: one run at a time."
        sides: list[Any] = [_sides.Fanlight(stack.enter_context(fanlight(folder / "fanlight", trust=chosen.trust)))]
        if chosen.gradio:
            sides.append(_sides.Gradio(stack.enter_context(_serve_gradio(folder, batches, layout))))
        browser = stack.enter_context(chromium())
        _settle(sides)
        for side in sides:
            _weigh(found, browser, side)
        peaks = {side.name: stack.enter_context(Peak(side.server.pid)) for side in sides}
        _explain(found, browser, sides, methods, pictures, chosen.rounds)
        for _ in range(chosen.neighbours):
            for side in sides:
                took = _neighbour(browser, side, pictures)
                found[f"neighbour_{side.name}"].append(took)
                say(f"Saliency beside somebody's occlusion, {side.name}: {took:.2f} s")
                _settle(sides)
        for name, peak in peaks.items():
            found[f"pss_{name}"], found[f"rss_{name}"] = [peak.pss / GIB], [peak.rss / GIB]
    if chosen.gradio:
        for method in methods:
            short = SHORT[method]
            found[f"{short}_ratio"] = ratios(found[f"{short}_fanlight"], found[f"{short}_gradio"])
    made = figures(FIGURES, found, remarks)
    return {**about, **made, "passed": passed(made)}


def _explain(
    found: Found, browser: Any, sides: Sequence[Any], methods: Sequence[str], pictures: Iterator[Path], rounds: int
) -> None:
    """Each method on each side in turn; a picture that neither has seen. One round before the first is not counted."""
    with contextlib.ExitStack() as stack:
        tabs = {side.name: stack.enter_context(Tab(browser)) for side in sides}
        for side in sides:
            side.open(tabs[side.name])
            _sides.explain(side, tabs[side.name], "Saliency", next(pictures))
            _settle(sides)
        for _ in range(rounds):
            for method in methods:
                picture = next(pictures)
                for side in sides:
                    sent, painted = _sides.explain(side, tabs[side.name], method, picture)
                    found[f"{SHORT[method]}_{side.name}"].append(sent + painted)
                    found[f"{SHORT[method]}_click_{side.name}"].append(painted)
                    say(f"{TOLD[method]}, {side.name}: {sent:.2f} + {painted:.2f} s")
                    _settle(sides)
        for side in sides:
            found[f"strangers_{side.name}"][0] += len(strangers(tabs[side.name].requests, side.server.url))


def _neighbour(browser: Any, side: Any, pictures: Iterator[Path]) -> float:
    """Seconds from Explain to painted of one person's Saliency while another person's occlusion runs."""
    with Tab(browser) as first, Tab(browser) as second:
        for tab in (first, second):
            side.open(tab)
            side.send(tab, next(pictures))
        side.choose(second, "Saliency")
        side.choose(first, "Occlusion")
        side.press(first)
        first.page.wait_for_timeout(1500)  # well into it
        side.press(second)
        took = _sides.seen(second)
        if not side.outlasted(first):
            raise FanlightError("The occlusion was over before the other person had her map.", code="too_fast")
        _sides.seen(first)
        return took


def _weigh(found: Found, browser: Any, side: Any) -> None:
    """What a newcomer's browser loads: an empty cache, no cookie, the tour in sight."""
    pages = {"weight_first": "/", "weight_explain": "/explain"} if side.name == "fanlight" else {"weight_gradio": "/"}
    found[f"strangers_{side.name}"] = [0.0]
    for name, path in pages.items():
        with Tab(browser, toured=False) as tab:
            tab.page.goto(side.server.path(path))
            tab.page.wait_for_selector("h1")
            tab.page.wait_for_timeout(3000)
            found[name] = [tab.weight / MEGA]
            found[f"strangers_{side.name}"][0] += len(strangers(tab.requests, side.server.url))
            if side.name == "fanlight":
                found["plotly"] = [found["plotly"][0] if found["plotly"] else 0.0]
                found["plotly"][0] += sum("plotly" in url for url in tab.requests)


def _settle(sides: Sequence[Any]) -> None:
    """Waits until Fanlight has nothing left to do (trust records, worked examples), so that it takes nothing from the other."""
    with _api.client(sides[0].server) as http:
        _api.until_quiet(http)


def _files(folder: Path) -> Iterator[Path]:
    for name, blob in _pictures.photographs(seed=7):
        (folder / name).write_bytes(blob)
        yield folder / name


@contextlib.contextmanager
def _serve_gradio(folder: Path, batches: dict[str, int], layout: list[str]) -> Iterator[Server]:
    port = free_port()
    given = [part for name, size in batches.items() for part in (f"--{name.replace('_', '-')}", str(size))]
    command = [sys.executable, "-m", "fanlight.bench._gradio_app", "serve", "--port", str(port), *given, *layout]
    with program(command, port, folder / "gradio.log", {"GRADIO_ANALYTICS_ENABLED": "False"}) as server:
        server.until("/")
        yield server


def _tune(layout: list[str]) -> str:
    command = [sys.executable, "-m", "fanlight.bench._gradio_app", "tune", *layout]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise FanlightError(
            f"The Gradio application does not start: {done.stderr.strip()[-500:]}",
            code="not_installed",
            hint="pip install 'fanlight[bench]', or leave it out with --no-gradio.",
        )
    return done.stdout.strip().splitlines()[-1]


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench page --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--neighbours", type=int, default=3, help="rounds of one person beside another's occlusion")
    parser.add_argument("--methods", default=",".join(SHORT.values()), help="which to measure, comma-separated")
    parser.add_argument("--gradio", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--channels-last", action="store_true", help="Fanlight's memory layout for Captum, too")
    parser.add_argument("--trust", choices=("auto", "request"), default="auto")
    return parser.parse_args(given)
