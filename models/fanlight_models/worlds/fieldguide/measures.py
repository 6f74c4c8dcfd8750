"""How good explanations are where the truth is known: each measure with a bootstrap interval, a random floor and the truth's own score.

A map is (height, width) at any resolution up to the picture's; positive means evidence for the target. Of a map that is coarser than the picture
every pixel has the value of the cell it lies in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide.drawing import SIZE, Drawing, Plate, draw
from fanlight_models.worlds.fieldguide.scenes import Scene
from fanlight_models.worlds.fieldguide.table import PARTS
from fanlight_models.worlds.fieldguide.truth import PartTruth, Predict, outputs, part_truth

Floats = NDArray[np.float64]
Explain = Callable[[NDArray[np.uint8]], NDArray[np.floating]]
"""A picture (size, size, 3) -> its map (height, width), for the target that the caller has in mind."""
CHANCE = 20  # random maps a scene that the floor is the mean of; deletion and preservation, which redraw, are asked of the first
MATTERS = 0.10  # a part matters if its effect is at least this share of the largest


@dataclass(frozen=True)
class Measured:
    """A mean over `n` pictures with its 95 % interval, and what random maps and the truth itself get on the same pictures."""

    value: float
    low: float
    high: float
    floor: float
    ceiling: float
    n: int


def bootstrap(values: Floats, *, draws: int = 1000, seed: int = 0) -> tuple[float, float, float]:
    """Mean and 95 % percentile interval over resampled pictures; NaN entries (a measure that is undefined on a picture) are left out."""
    kept = values[np.isfinite(values)]
    if not kept.size:
        return float("nan"), float("nan"), float("nan")
    chance = np.random.default_rng(seed)
    means = kept[chance.integers(0, kept.size, (draws, kept.size))].mean(1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(kept.mean()), float(low), float(high)


def at_size(values: NDArray[np.floating], size: int) -> Floats:
    """A map at the resolution of the picture. Errors: ValueError for what is no map."""
    given = np.asarray(values, np.float64)
    if given.ndim != 2 or not all(given.shape) or not np.isfinite(given).all():
        raise ValueError(f"A map has two dimensions and finite values; this one has shape {given.shape}.")
    rows, columns = (np.arange(size) * n // size for n in given.shape)
    cells = given[rows[:, None], columns]
    area: Floats = cells * (given.size / size**2)  # so that the sum stays what it was
    return area


def part_scores(values: NDArray[np.floating], drawing: Drawing) -> Floats:
    """(14,): how much of a map lies on each part: its sum over the pixels, each by the part's share of it."""
    size = drawing.image.shape[0]
    return np.asarray(np.einsum("pyx,yx->p", drawing.shares[: len(PARTS)], at_size(values, size)), np.float64)


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's, ties at their mean rank; NaN where one of them is constant."""
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum() / scale) if scale > 0 else float("nan")


def _ranks(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def part_ranking(values: NDArray[np.floating], drawing: Drawing, truth: PartTruth) -> float:
    """Rank correlation of the map's part scores with the parts' true effects, over the parts that can be seen."""
    seen = truth.visible
    return rank_correlation(part_scores(values, drawing)[seen], truth.effects[seen])


def energy(values: NDArray[np.floating], region: NDArray[np.floating] | NDArray[np.bool_]) -> float:
    """Share of the map's positive part inside a region (size, size); NaN for a map that is nowhere positive."""
    positive = np.maximum(at_size(values, region.shape[0]), 0)
    total = positive.sum()
    return float((positive * region).sum() / total) if total > 0 else float("nan")


def inside_bird(values: NDArray[np.floating], drawing: Drawing) -> float:
    """Share of the positive part on pixels that show any of the bird."""
    return energy(values, drawing.shares[: len(PARTS)].sum(0) > 0)


def inside_what_matters(values: NDArray[np.floating], drawing: Drawing, truth: PartTruth) -> float:
    """Share of the positive part on parts whose true effect is at least a tenth of the largest; NaN where no part speaks for the target."""
    most = truth.effects.max()
    if most <= 0:
        return float("nan")
    return energy(values, drawing.shares[: len(PARTS)][truth.effects >= MATTERS * most].sum(0) > 0)


def on_background(values: NDArray[np.floating], drawing: Drawing) -> float:
    """Share of the positive part that lies outside the bird: what a page would show of a shortcut."""
    return 1.0 - inside_bird(values, drawing)


def removal(
    scene: Scene, predict: Predict, truth: PartTruth, scores: Floats, *, size: int = SIZE, plate: Plate | None = None
) -> tuple[float, float]:
    """Deletion and preservation with exact redraws: mean of the target's output, 1 for the picture and 0 for the picture without the bird, while the
    visible parts are taken away, or put back, best first. Deletion is better when low, preservation when high; NaN where the bird adds nothing."""
    span = truth.whole - truth.blank
    if abs(span) < 1e-9:
        return float("nan"), float("nan")
    plate = plate or Plate(scene, size)
    order = [PARTS[i] for i in np.argsort(-scores, kind="stable") if truth.visible[i]]
    gone = [frozenset(order[:k]) | scene.removed for k in range(len(order) + 1)]
    kept = [frozenset(PARTS) - frozenset(order[:k]) for k in range(len(order) + 1)]
    values = (outputs(plate, gone + kept, predict, truth.target) - truth.blank) / span
    return _area(values[: len(gone)]), _area(values[len(gone) :])


def _area(curve: Floats) -> float:
    return float((curve[:-1] + curve[1:]).mean() / 2) if len(curve) > 1 else float(curve[0])


def oracle(drawing: Drawing, truth: PartTruth, shape: tuple[int, int] | None = None) -> Floats:
    """The map that says the truth: each part's effect spread evenly over what can be seen of it; at `shape` cells, summed within each cell."""
    shares = drawing.shares[: len(PARTS)]
    area = shares.sum((1, 2))
    each = np.divide(truth.effects, area, out=np.zeros(len(PARTS)), where=area > 0)
    full: Floats = np.einsum("p,pyx->yx", each, shares)
    if shape is None or shape == full.shape:
        return full
    rows, columns = (np.arange(full.shape[0]) * n // full.shape[0] for n in shape)
    out = np.zeros(shape)
    np.add.at(out, (rows[:, None], columns), full)
    return out


MEASURES = ("part ranking", "inside the bird", "inside what matters", "on the background", "deletion", "preservation")


def judge(
    explain: Explain,
    predict: Predict,
    scenes: Sequence[Scene],
    targets: Sequence[int],
    *,
    size: int = SIZE,
    seed: int = 0,
) -> dict[str, Measured]:
    """All of `MEASURES` for one method on some scenes: about fifty redraws a scene. Floor: random maps of the same resolution, without
    negative values where the method's has none: such a map puts more on large parts, whatever the model does.
    Ceiling: the oracle's map at that resolution, so that a coarse map is not blamed for being coarse."""
    chance = np.random.default_rng(seed)
    rows: list[list[list[float]]] = []
    for scene, target in zip(scenes, targets, strict=True):
        plate = Plate(scene, size)
        drawing, truth = plate.draw(), part_truth(scene, predict, target, size=size)
        given = np.asarray(explain(drawing.image), np.float64)
        shape = (given.shape[0], given.shape[1])
        noise = chance.standard_normal((CHANCE, *shape))
        random = np.abs(noise) if given.min() >= 0 else noise
        maps = (given, random[0], oracle(drawing, truth, shape))
        rows.append([_on(m, drawing, truth) + _redrawn(m, scene, drawing, truth, predict, plate) for m in maps])
        rows[-1][1][:4] = np.mean([_on(m, drawing, truth) for m in random], 0).tolist()
    table = np.array(rows).reshape(len(rows), 3, len(MEASURES))
    out = {}
    for i, name in enumerate(MEASURES):
        value, low, high = bootstrap(table[:, 0, i], seed=seed)
        floor, ceiling = (bootstrap(table[:, k, i], seed=seed)[0] for k in (1, 2))
        out[name] = Measured(value, low, high, floor, ceiling, int(np.isfinite(table[:, 0, i]).sum()))
    return out


def _on(values: Floats, drawing: Drawing, truth: PartTruth) -> list[float]:
    """The measures that look at the map alone, in the order of `MEASURES`."""
    return [
        part_ranking(values, drawing, truth), inside_bird(values, drawing), inside_what_matters(values, drawing, truth),
        on_background(values, drawing),
    ]  # fmt: skip


def _redrawn(
    values: Floats, scene: Scene, drawing: Drawing, truth: PartTruth, predict: Predict, plate: Plate
) -> list[float]:
    return list(removal(scene, predict, truth, part_scores(values, drawing), plate=plate))


def concept_accuracy(
    probabilities: Floats, concepts: NDArray[np.bool_], seen: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Accuracy at 0.5 on concepts (n, concepts) that can be seen in the picture, and on those that cannot; per picture (n,), for `bootstrap`.
    `seen`: (n, concepts), see `Drawing.seen_concepts`. NaN for a picture that has none of a kind."""
    right = (probabilities > 0.5) == concepts
    return _mean(right, seen), _mean(right, ~seen)


def _mean(values: NDArray[np.bool_], where: NDArray[np.bool_]) -> Floats:
    count = where.sum(1)
    return np.asarray(
        np.divide((values & where).sum(1), count, out=np.full(len(values), np.nan), where=count > 0), np.float64
    )


def intervention_gain(curve: Floats) -> Floats:
    """(n,): gain of a curve (n, steps + 1) per intervention, mean over its steps."""
    return np.asarray((curve[:, -1] - curve[:, 0]) / (curve.shape[1] - 1), np.float64)


def pictures(scenes: Sequence[Scene], size: int = SIZE) -> NDArray[np.uint8]:
    """(n, size, size, 3)."""
    return np.stack([draw(s, size).image for s in scenes])
