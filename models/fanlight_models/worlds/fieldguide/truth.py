"""The truth about a model, from redrawing: what its output owes to each part, each value and the background.

A model is any function `predict` from pictures (n, size, size, 3) uint8 to outputs (n, classes). Nothing here asks how it works. "Importance" of
a part means: the same picture is drawn without it, and the target's output drops by that much.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide.drawing import SIZE, Drawing, Plate, draw
from fanlight_models.worlds.fieldguide.scenes import BACKGROUNDS, Scene
from fanlight_models.worlds.fieldguide.table import GROUP, GROUPS, PARTS

Floats = NDArray[np.float64]
Predict = Callable[[NDArray[np.uint8]], NDArray[np.floating]]
BATCH = 64
EXACT = 4096  # most redraws for exact Shapley values: twelve visible parts


@dataclass(frozen=True, eq=False)
class PartTruth:
    """What the target's output owes to the parts. `effects` (14,): drop of the output without the part; 0 for what cannot be seen, exactly.

    whole, blank: output for the picture and for the picture without the bird. visible (14,): parts with at least one pixel.
    shapley (14,): None unless asked for; sums to whole - blank. error (14,): its standard error, 0 where all subsets were drawn.
    """

    target: int
    whole: float
    blank: float
    effects: Floats
    visible: NDArray[np.bool_]
    shapley: Floats | None = None
    error: Floats | None = None


def outputs(plate: Plate, removed: Iterable[frozenset[str]], predict: Predict, target: int) -> Floats:
    """The target's output for a plate without each of some sets of parts, drawn and asked for in batches."""
    found: list[Floats] = []
    every = iter(removed)
    while some := list(itertools.islice(every, BATCH)):
        given = np.asarray(predict(np.stack([plate.draw(r).image for r in some])))
        if given.ndim != 2 or len(given) != len(some):
            raise ValueError(
                f"predict returned shape {given.shape} for {len(some)} pictures; (pictures, classes) is expected."
            )
        found.append(given[:, target].astype(np.float64))
    return np.concatenate(found) if found else np.zeros(0)


def touching(drawing: Drawing) -> NDArray[np.bool_]:
    """(14,): parts that own at least one subsample. The others change no pixel when they go."""
    present: NDArray[np.bool_] = np.bincount(drawing.canvas.ravel(), minlength=len(PARTS))[: len(PARTS)] > 0
    return present


def part_truth(
    scene: Scene,
    predict: Predict,
    target: int,
    *,
    size: int = SIZE,
    shapley: bool = False,
    permutations: int = 32,
    seed: int = 0,
) -> PartTruth:
    """Effects of removing each part, and Shapley values over the parts of the bird where asked for: exact up to twelve parts (all subsets are
    drawn, some ten seconds), otherwise from `permutations` pairs of an order and its reverse. A part that others cover counts for what
    appears when they go."""
    plate = Plate(scene, size)
    visible = touching(plate.draw())
    shown = [p for p in PARTS if visible[PARTS.index(p)]]
    sets = [scene.removed, frozenset(PARTS), *(scene.removed | {p} for p in shown)]
    values = outputs(plate, sets, predict, target)
    effects = np.zeros(len(PARTS))
    effects[visible] = values[0] - values[2:]
    if not shapley:
        return PartTruth(target, float(values[0]), float(values[1]), effects, visible)
    players = scene.parts()
    phi, error = _shapley(
        players, lambda kept: outputs(plate, (frozenset(PARTS) - k for k in kept), predict, target), permutations, seed
    )
    whole, wrong = np.zeros(len(PARTS)), np.zeros(len(PARTS))
    for p, a, b in zip(players, phi, error, strict=True):
        whole[PARTS.index(p)], wrong[PARTS.index(p)] = a, b
    return PartTruth(target, float(values[0]), float(values[1]), effects, visible, whole, wrong)


def _shapley(
    players: Sequence[str], game: Callable[[list[frozenset[str]]], Floats], pairs: int, seed: int
) -> tuple[Floats, Floats]:
    n = len(players)
    if 2**n <= EXACT:
        values = game([frozenset(p for i, p in enumerate(players) if code >> i & 1) for code in range(2**n)])
        phi = np.zeros(n)
        for code, i in itertools.product(range(2**n), range(n)):
            if not code >> i & 1:
                k = code.bit_count()
                phi[i] += (values[code | 1 << i] - values[code]) / (n * math.comb(n - 1, k))
        return phi, np.zeros(n)
    chance = np.random.default_rng(seed)
    orders = [o for _ in range(pairs) for p in [chance.permutation(n)] for o in (p, p[::-1])]
    values = game([frozenset(players[i] for i in order[:k]) for order in orders for k in range(n + 1)]).reshape(
        len(orders), n + 1
    )
    gains = np.empty((len(orders), n))
    for row, order in enumerate(orders):
        gains[row, order] = np.diff(values[row])
    paired = gains.reshape(pairs, 2, n).mean(1)
    return paired.mean(0), paired.std(0, ddof=1) / np.sqrt(pairs)


def concept_effect(scene: Scene, predict: Predict, group: str, *, size: int = SIZE) -> Floats:
    """(values, classes): output when the group shows each of its values, minus the output of the picture as it is."""
    values = GROUPS[GROUP[group]].values
    pictures = [scene.with_(**{group.replace(" ", "_"): v}) for v in values]
    given = np.asarray(predict(np.stack([draw(s, size).image for s in (scene, *pictures)])), np.float64)
    return np.asarray(given[1:] - given[0], np.float64)


@dataclass(frozen=True)
class Shortcut:
    """How much a model owes to the background of a picture: mean absolute change of the target's output before the other backgrounds, absolute
    change when the bird goes, and the share of the first in their sum (0 where neither changes anything)."""

    background: float
    bird: float
    share: float


def shortcut(scene: Scene, predict: Predict, target: int, *, size: int = SIZE) -> Shortcut:
    others = [b for b in BACKGROUNDS if b != scene.background]
    scenes = (scene, scene.blank(), *(scene.on(b) for b in others))
    given = np.asarray(predict(np.stack([draw(s, size).image for s in scenes])), np.float64)[:, target]
    behind, bird = float(np.abs(given[2:] - given[0]).mean()), float(abs(given[0] - given[1]))
    return Shortcut(behind, bird, behind / (behind + bird) if behind + bird > 0 else 0.0)
