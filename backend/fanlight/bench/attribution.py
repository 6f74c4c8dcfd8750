"""What explanations cost: each method on a ViT-tiny in forward passes and memory, beside Captum as it comes and tuned; evaluations for an error.

All sides take turns in one process, with one thread and one picture. Costs are processor time over that of one forward pass measured just before
and after, so that a busy machine changes them little. Peaks of memory are those of processes of their own. Trust is not part of it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fanlight.bench._figures import Declared, figures, passed, ratios
from fanlight.bench._machine import machine, today, versions
from fanlight.cli.output import say

TOLD = {
    "saliency": "Saliency",
    "grad_cam": "Grad-CAM on tokens",
    "ig50": "Integrated Gradients, 50 steps",
    "ablation49": "Ablation, 49 squares",
    "shap512": "KernelSHAP, 512 samples",
}
LIMITS = {"saliency": 2.4, "grad_cam": 1.25, "ig50": 105, "ablation49": 46, "shap512": 465}
EXTRA = {"ig50": 160}
OTHERS = {
    "captum": "Captum",
    "captum_5": "Captum, 5 at a time",
    "captum_10": "Captum, 10 at a time",
    "captum_16": "Captum, 16 at a time",
}
SIDES = {
    "saliency": ("captum",),
    "grad_cam": ("captum",),
    "ig50": ("captum", "captum_5", "captum_10"),
    "ablation49": ("captum", "captum_16"),
    "shap512": ("captum", "captum_16"),
}
TUNED = {
    "saliency": "captum",
    "grad_cam": "captum",
    "ig50": "captum_5",  # as much memory; larger batches are faster and hold more
    "ablation49": "captum_16",
    "shap512": "captum_16",
}
"""What Fanlight is compared with."""
GAMES = {"photo": "a photograph in 12 squares", "made": "a made game of 12 players"}
BUDGETS = (128, 256, 512, 1024)
REPEATS = {"saliency": 8, "grad_cam": 8}  # in a round, of what is short
UNIT = 8  # forward passes between two jobs


def _declared() -> dict[str, Declared]:
    found: dict[str, Declared] = {"forward": Declared(measures="One forward pass, processor time", unit="ms")}
    for job, title in TOLD.items():
        found[f"{job}_ours"] = Declared(measures=f"{title}: Fanlight", unit="passes", at_most=LIMITS[job])
        for side in SIDES[job]:
            found[f"{job}_{side}"] = Declared(measures=f"{title}: {OTHERS[side]}", unit="passes")
        found[f"{job}_ratio"] = Declared(measures=f"{title}: Fanlight over {OTHERS[TUNED[job]]}")
        if job != "grad_cam":
            found[f"{job}_least"] = Declared(
                measures=f"{title}: lower end of the 95 % interval of that ratio", at_most=1.0
            )
    for job, title in TOLD.items():
        for side in ("ours", *SIDES[job]):
            who = "Fanlight" if side == "ours" else OTHERS[side]
            most = EXTRA.get(job) if side == "ours" else None
            found[f"memory_{job}_{side}"] = Declared(measures=f"{title}: memory, {who}", unit="MB", at_most=most)
    for game, title in GAMES.items():
        for n in BUDGETS:
            found[f"evaluations_{game}_ratio_{n}"] = Declared(
                measures=f"KernelSHAP on {title}: {n} evaluations over Captum's for that error", at_most=0.5
            )
            found[f"evaluations_{game}_error_{n}"] = Declared(
                measures=f"KernelSHAP on {title}: error of {n} evaluations, Fanlight", unit="%"
            )
            found[f"evaluations_{game}_captum_error_{n}"] = Declared(
                measures=f"KernelSHAP on {title}: error of {n} evaluations, Captum", unit="%"
            )
    return found


FIGURES = _declared()
PACKAGES = ("fanlight", "torch", "captum", "timm", "scikit-learn")
PARTS = ("time", "memory", "evaluations")


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rounds N, --jobs NAME ..., --only PART (time, memory or evaluations)."""
    parser = argparse.ArgumentParser(prog="fanlight bench attribution --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", nargs="+", choices=list(TOLD), default=list(TOLD))
    parser.add_argument("--only", choices=PARTS)
    chosen = parser.parse_args(options)
    about: dict[str, Any] = {
        "benchmark": "attribution",
        "date": today(),
        "machine": machine(),
        "versions": versions(PACKAGES),
    }
    about["options"] = {"rounds": chosen.rounds, "only": chosen.only}
    measured: dict[str, Sequence[float]] = {}
    remarks: dict[str, str] = {}
    if chosen.only in (None, "time"):
        measured |= times(chosen.jobs, chosen.rounds)
        remarks |= _remarks(chosen.jobs)
    if chosen.only in (None, "memory"):
        measured |= memory(chosen.jobs)
    if chosen.only in (None, "evaluations"):
        from fanlight.bench import _evaluations

        say("Evaluations for an error.")
        measured |= _evaluations.flat(_evaluations.compared(rounds=3, per_round=4))
        remarks |= {
            f"evaluations_{game}_ratio_{n}": "Rounds of 4 seeds; error: root mean square over that of the exact values."
            for game in GAMES
            for n in BUDGETS
        }
    found = figures(FIGURES, measured, remarks)
    return {**about, **found, "passed": passed(found)}


def times(jobs: Sequence[str], rounds: int) -> dict[str, Sequence[float]]:
    """Multiples of a forward pass, a value per round, and the ratios."""
    from fanlight.bench import _explained, _jobs

    bench = _jobs.prepared()
    forward = _jobs.forward(bench)
    found: dict[str, list[float]] = {"forward": []}
    for name in jobs:
        acts = {side: _jobs.job(bench, name, side) for side in ("ours", *SIDES[name])}
        for act in acts.values():
            act()  # the first time plans the kernels
        cost: dict[str, list[float]] = {side: [] for side in acts}
        for r in range(rounds):
            before = seconds(forward, UNIT)
            for side, act in list(acts.items())[:: -1 if r % 2 else 1]:
                took = seconds(act, REPEATS.get(name, 1))
                after = seconds(forward, UNIT)
                unit = (before + after) / 2
                cost[side].append(took)
                found.setdefault(f"{name}_{side}", []).append(took / unit)
                found["forward"].append(1000 * unit)
                before = after
        ratio = ratios(cost["ours"], cost[TUNED[name]])
        found[f"{name}_ratio"] = ratio
        if f"{name}_least" in FIGURES:
            found[f"{name}_least"] = [_explained.interval(np.array(ratio))[0]]
        said = ", ".join(f"{side} {statistics.median(found[f'{name}_{side}']):.4g}" for side in acts)
        say(f"{TOLD[name]}: {said}; over {OTHERS[TUNED[name]]} {statistics.median(ratio):.3f}")
    return dict(found)


def seconds(act: Callable[[], object], times: int) -> float:
    """Processor time of one run, the mean of `times`."""
    began = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - began) / times


def memory(jobs: Sequence[str]) -> dict[str, Sequence[float]]:
    """Peaks beyond what a forward pass left, MB."""
    from fanlight.bench import _peak

    found: dict[str, Sequence[float]] = {}
    for name in jobs:
        for side in ("ours", *SIDES[name]):
            found[f"memory_{name}_{side}"] = [_peak.measured(name, side)]
        said = ", ".join(f"{side} {found[f'memory_{name}_{side}'][0]:.0f}" for side in ("ours", *SIDES[name]))
        say(f"{TOLD[name]}, MB: {said}")
    return found


def _remarks(jobs: Sequence[str]) -> dict[str, str]:
    if "grad_cam" not in jobs:
        return {}
    from fanlight.bench import _jobs

    made = tuple(_jobs.job(_jobs.prepared(), "grad_cam", "captum")().shape)
    return {
        "grad_cam_captum": f"No map: tokens are taken for channels, so that it has the shape {made} where the grid is 14 by 14.",
        "grad_cam_ratio": "Stated for completeness: the two do not compute the same.",
    }
