"""How many evaluations KernelSHAP needs for an error: the explainer of the product and Captum on games of twelve players, whose Shapley
values are known because all 4,096 coalitions are.

A game is a network that looks its answer up: a white picture of 3 by 4 squares, black where a player is out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from captum.attr import KernelShap
from torch import Tensor, nn

from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.bench import _explained, _pictures
from fanlight.decoding import decode
from fanlight.explainers import evaluate, maps
from fanlight.explainers.attribution.kernel_shap import KernelSHAP
from fanlight.explainers.attribution.shapley import everything, exact
from fanlight.explainers.base import Item, Target

ROWS, COLUMNS, SQUARE = 3, 4, 16
PLAYERS = ROWS * COLUMNS
OURS = (128, 256, 512, 1024)
CAPTUM = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
Floats = np.ndarray[Any, np.dtype[np.float64]]


class Lookup(nn.Module):
    """(B, 3, H, W) -> (B, 2): the worth of the squares that are white, and 0."""

    def __init__(self, worth: Floats):
        super().__init__()
        self.worth = nn.Parameter(torch.from_numpy(worth).float())  # (4096,)
        self.asked = 0

    def forward(self, x: Tensor) -> Tensor:
        there = x[:, 0, SQUARE // 2 :: SQUARE, SQUARE // 2 :: SQUARE].flatten(1) > 0.5  # (B, 12)
        self.asked += len(x)
        found = self.worth[(there * 2 ** torch.arange(PLAYERS)).sum(1)]
        return torch.stack([found, torch.zeros_like(found)], 1)


class Game(NamedTuple):
    """What both sides are asked about. Args: truth: the Shapley values, (12,)."""

    model: Any
    item: Item
    truth: Floats


def game(worth: Floats) -> Game:
    """Args: worth: of each coalition, (4096,); player i is in where bit i is set."""
    size = (ROWS * SQUARE, COLUMNS * SQUARE)
    model = TorchImageClassifier(Lookup(worth), classes=["worth", "nothing"], preprocessing=Preprocessing(size))
    white = np.full((*size, 3), 255, dtype=np.uint8)
    one = replace(_explained.item(model, white), target=Target(0))
    return Game(model, one, exact(worth[:, None])[:, 0])


def of_a_photograph() -> Floats:
    """A real game: the answer of the default model to a photograph of which squares are hidden by grey."""
    model: Any = _explained.default_model()
    _, blob = next(_pictures.photographs())
    one = _explained.item(model, decode(blob, max_bytes=1 << 26, max_pixels=1 << 26).pixels)
    rows, columns = (np.arange(n) * parts // n for n, parts in zip(model.size, (ROWS, COLUMNS), strict=True))
    label = torch.from_numpy(rows[:, None] * COLUMNS + columns[None])
    kept = torch.from_numpy(everything(PLAYERS))
    hidden = maps.hider(model, one, "grey")
    steps = evaluate.logits(model, lambda a, b: hidden(kept[a:b][:, label]), len(kept), _explained.lent())
    return np.asarray(one.target.value(_explained.finished(steps)).double().numpy())


def of_interactions(seed: int = 0) -> Floats:
    """A made game in which one, two and three players together are worth something, drawn from normal distributions."""
    rng = np.random.default_rng(seed)
    members = everything(PLAYERS)
    worth = np.zeros(len(members))
    for size, spread in ((1, 1.0), (2, 0.5), (3, 0.25)):
        for group in combinations(range(PLAYERS), size):
            worth += rng.normal(0, spread) * members[:, group].all(1)
    return worth


def ours(given: Game, samples: int, seed: int) -> tuple[Floats, int]:
    """Shapley values by the explainer, and how many pictures it asked about."""
    item = replace(given.item, seed=seed)
    params = KernelSHAP.Params(patch=SQUARE, samples=samples, baseline="black")
    net: Any = given.model.net
    before = net.asked
    regions = _explained.explained(KernelSHAP, params, given.model, item)[0]
    return np.asarray(regions.arrays["value"], dtype=np.float64), net.asked - before


def captum(given: Game, samples: int, seed: int) -> tuple[Floats, int]:
    """The same by Captum."""
    torch.manual_seed(seed)
    net: Any = given.model.net
    before = net.asked
    label = torch.from_numpy(maps.squares(given.model.size, SQUARE)).long()
    x = given.item.x[None]
    with torch.no_grad():
        found = KernelShap(net).attribute(
            x,
            torch.zeros_like(x),
            target=0,
            feature_mask=label[None, None],
            n_samples=samples,
            perturbations_per_eval=64,
        )
    return found[0, 0, SQUARE // 2 :: SQUARE, SQUARE // 2 :: SQUARE].flatten().double().numpy(), net.asked - before


def curve(
    side: Callable[[Game, int, int], tuple[Floats, int]], given: Game, budgets: Sequence[int], seeds: Sequence[int]
) -> tuple[Floats, Floats]:
    """Evaluations and error at each budget: the root of the mean squared error over players and seeds, relative to that of the values."""
    asked, errors = [], []
    for budget in budgets:
        found = [side(given, budget, seed) for seed in seeds]
        asked.append(np.mean([n for _, n in found]))
        errors.append(np.sqrt(np.mean([(phi - given.truth) ** 2 for phi, _ in found]) / np.mean(given.truth**2)))
    return np.array(asked), np.array(errors)


def needed(asked: Floats, errors: Floats, error: float) -> float:
    """Evaluations at which a falling curve reaches an error, between its points in logarithms; beyond its end the most that were tried."""
    falling = np.minimum.accumulate(errors)
    if error < falling[-1]:
        return float(asked[-1])
    return float(np.exp(np.interp(-np.log(error), -np.log(falling), np.log(asked))))


def compared(rounds: int, per_round: int) -> dict[str, dict[str, list[float]]]:
    """For each game: `ratio_N`, our evaluations over those that Captum needs for the error that we have at N; `error_N` and
    `captum_error_N`, the errors at N. One value per round, of `per_round` seeds each."""
    told: dict[str, dict[str, list[float]]] = {}
    for name, worth in (("photo", of_a_photograph()), ("made", of_interactions())):
        given = game(worth)
        found: dict[str, list[float]] = {}
        for r in range(rounds):
            seeds = range(r * per_round, (r + 1) * per_round)
            theirs = curve(captum, given, CAPTUM, seeds)
            own = curve(ours, given, OURS, seeds)
            for n, asked, error in zip(OURS, *own, strict=True):
                found.setdefault(f"ratio_{n}", []).append(float(asked) / needed(*theirs, float(error)))
                found.setdefault(f"error_{n}", []).append(100 * float(error))
                found.setdefault(f"captum_error_{n}", []).append(100 * float(theirs[1][CAPTUM.index(n)]))
        told[name] = found
    return told


def flat(told: Mapping[str, Mapping[str, list[float]]]) -> dict[str, list[float]]:
    return {f"evaluations_{game}_{name}": values for game, found in told.items() for name, values in found.items()}
