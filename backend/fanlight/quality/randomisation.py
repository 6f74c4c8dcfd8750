"""Parameter randomisation: does the map depend on what the network has learned?

Adebayo et al., Sanity Checks for Saliency Maps (NeurIPS 2018), section 3: the weights are drawn anew, layer by layer
from the top, and the map is made again. One that stays as it is shows the picture, not the model.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from fanlight.artifact import Artifact
from fanlight.comparison import plane
from fanlight.explainers.base import Step
from fanlight.quality.again import Floats, Subject, made, seen
from fanlight.quality.found import Found, Number
from fanlight.quality.ranks import alike, chance, reading
from fanlight.quality.untrained import Copy

SEEDS = 4
LAST = 8  # draws of the whole network, whose number stands for the check
SAME = 0.5  # |rank correlation| with the map of an untrained network above which a map is said to be the same
FINE = 256  # pixels along a side at which single pixels are compared


def cost(passes: int) -> int:
    return (3 * SEEDS + LAST) * (passes + 1)


def run(subject: Subject) -> Generator[Step, None, Found]:
    """|Spearman| of patches between the stored map and those of networks whose top layers are redrawn: at four depths,
    the last of them all, the mean over SEEDS draws, LAST of the whole, with its 95 % interval by Student's t."""
    twin = Copy(subject.network)
    yield Step(0.0, "copying the network")
    stored = subject.value
    patches, pixels = subject.patches(stored), fine(stored)
    plan = [(depth, LAST if depth == len(twin.layers) else SEEDS) for depth in twin.depths()]
    total, at = sum(draws for _, draws in plan), 0
    coarse: list[list[float]] = []
    single: list[float] = []
    for depth, draws in plan:
        coarse.append([])
        for seed in range(draws):
            span = (at / total, (at + 1) / total)
            message = f"{depth} of {len(twin.layers)} layers untrained, draw {seed + 1} of {draws}"
            before = twin.network.asked
            yield from twin.redraw(depth, seed, subject.item.x, span[0], message)
            model = subject.asked(twin.network)
            other = plane((yield from made(subject, model, seen(model, subject.item), span, message)))
            subject.network.asked += twin.network.asked - before
            coarse[-1].append(abs(alike(patches, subject.patches(other))))
            if depth == len(twin.layers):
                single.append(abs(alike(pixels, fine(other))))
            at += 1
    levels = [reading(values, (0.0, 1.0)) for values in coarse]
    random = chance(patches, LAST, absolute=True)
    found = levels[-1]
    gone = found["lo"] <= random["hi"] and found["hi"] <= SAME
    verdict = "warn" if found["value"] > SAME else "good" if gone else "plain"
    return Found(
        found=found,
        floors={"random": random, "edges": {"value": 1.0, "lo": 1.0, "hi": 1.0}},
        verdict=verdict,
        more={"top layer alone": levels[0], "by single pixels": reading(single, (0.0, 1.0))},
        parameters={
            "depths": [depth for depth, _ in plan],
            "layers": len(twin.layers),
            "draws": [draws for _, draws in plan],
            "patch": subject.side,
        },
        seeds=list(range(LAST)),
        curves=_curves([depth / len(twin.layers) for depth, _ in plan], levels, random),
    )


def fine(value: Floats) -> Floats:
    """At most FINE by FINE of the pixels, evenly."""
    rows, columns = (np.linspace(0, n - 1, min(n, FINE)).round().astype(int) for n in value.shape)
    return np.asarray(value[rows][:, columns])


def _curves(shares: list[float], levels: list[Number], random: Number) -> Artifact:
    x = np.array([0.0, *shares])
    ours = {side: np.array([1.0, *(level[side] for level in levels)]) for side in ("value", "lo", "hi")}
    flat = np.ones_like(x)
    chance_of: dict[str, Any] = {side: flat * random[side] for side in ("value", "lo", "hi")}
    rows = {side: np.stack([ours[side], flat, chance_of[side]]) for side in ("value", "lo", "hi")}
    return Artifact(
        "untrained-curves",
        "curves",
        {"x": x, "y": rows["value"], "lo": rows["lo"], "hi": rows["hi"]},
        {
            "x_label": "share of the layers that is untrained, from the top",
            "y_label": "likeness to the stored map, |rank correlation|",
            "series": ["this map", "edges", "random maps"],
            "floors": ["edges", "random maps"],
        },
    )
