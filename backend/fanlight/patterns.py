"""What many maps have in common: reduced to a coarse grid, grouped by k-means, laid out by their principal components. Pure functions of arrays.

k-means: S. Lloyd, "Least squares quantization in PCM", 1982; its start: D. Arthur and S. Vassilvitskii, "k-means++", 2007. The number of
groups is that with the largest mean silhouette: P. Rousseeuw, "Silhouettes", 1987. Everything drawn at random comes from one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

GRID = 7
"""Cells along each side of a reduced map: where, not what."""
GROUPS = range(2, 9)
FITTED = 2000
"""Maps that groups are found on; where there are more, these are drawn from them and the others go to the nearest centre."""
MEASURED = 1000
"""Maps that silhouettes are measured on: their number squared are the distances."""
STARTS = 4
ROUNDS = 100
LEAST = 8
"""Fewer maps are not grouped."""


@dataclass(frozen=True)
class Groups:
    """n maps in k groups, the largest first.

    Args:
        label: (n,) int, 0..k-1.
        centre: (k, d).
        silhouette: mean over the measured maps; by_group: (k,) the same within each group.
        tried: number of groups -> mean silhouette.
        measured: how many maps silhouettes were measured on.
    """

    label: Array
    centre: Array
    silhouette: float | None
    by_group: Array
    tried: dict[int, float]
    measured: int


def reduced(maps: Array, grid: int = GRID) -> Array:
    """(n, G, G) with G a multiple of `grid` -> (n, grid * grid): means over cells, each map of length 1; what is 0 everywhere stays 0."""
    n, side, _ = maps.shape
    step = side // grid
    means = maps.reshape(n, grid, step, grid, step).mean(axis=(2, 4)).reshape(n, grid * grid)
    length = np.linalg.norm(means, axis=1, keepdims=True)
    made: Array = np.divide(means, length, out=np.zeros_like(means), where=length > 0)
    return made


def grouped(points: Array, seed: int = 0) -> Groups:
    """Groups of (n, d) points by the best of `GROUPS`; one group where there are fewer than LEAST different points."""
    n = len(points)
    if n < LEAST or len(np.unique(points.round(9), axis=0)) < LEAST // 2:
        return Groups(np.zeros(n, int), points.mean(0, keepdims=True), None, np.zeros(1), {}, 0)
    rng = np.random.default_rng(seed)
    fitted = points if n <= FITTED else points[np.sort(rng.choice(n, FITTED, replace=False))]
    sample = fitted if len(fitted) <= MEASURED else fitted[np.sort(rng.choice(len(fitted), MEASURED, replace=False))]
    apart = np.sqrt(_squares(sample, sample))
    tried: dict[int, float] = {}
    best: tuple[float, Array, Array] | None = None
    for k in GROUPS:
        if k > len(fitted) // 2:
            break
        centre = k_means(fitted, k, rng)
        each = silhouettes(apart, nearest(sample, centre), k)
        tried[k] = float(each.mean())
        if best is None or tried[k] > best[0] + 1e-9:
            best = tried[k], centre, each
    assert best is not None
    value, centre, each = best
    label = nearest(points, centre)
    order = np.argsort(-np.bincount(label, minlength=len(centre)), kind="stable")
    rank = np.argsort(order)
    among = rank[nearest(sample, centre)]
    within = np.array([each[among == g].mean() if (among == g).any() else 0.0 for g in range(len(centre))])
    return Groups(rank[label], centre[order], value, within, tried, len(sample))


def k_means(points: Array, k: int, rng: np.random.Generator) -> Array:
    """(k, d) centres: the best of STARTS runs by the sum of squared distances."""
    best: tuple[float, Array] | None = None
    for _ in range(STARTS):
        centre = _seeded(points, k, rng)
        for _ in range(ROUNDS):
            label = nearest(points, centre)
            count = np.bincount(label, minlength=k)
            sums = np.eye(k)[label].T @ points
            moved = np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], centre)
            if np.allclose(moved, centre, atol=1e-9):
                break
            centre = moved
        cost = float(_squares(points, centre).min(1).sum())
        if best is None or cost < best[0] - 1e-12:
            best = cost, centre
    assert best is not None
    return best[1]


def _seeded(points: Array, k: int, rng: np.random.Generator) -> Array:
    """k-means++: each further centre is drawn with a probability that grows with the squared distance to the nearest one so far."""
    chosen = [points[rng.integers(len(points))]]
    for _ in range(k - 1):
        far = _squares(points, np.array(chosen)).min(1)
        total = far.sum()
        chosen.append(points[rng.choice(len(points), p=far / total) if total > 0 else rng.integers(len(points))])
    return np.array(chosen)


def nearest(points: Array, centre: Array) -> Array:
    """(n,) index of the nearest centre."""
    found: Array = _squares(points, centre).argmin(1)
    return found


def _squares(a: Array, b: Array) -> Array:
    """(n, m) squared distances, never below 0."""
    made: Array = np.maximum((a**2).sum(1)[:, None] - 2 * a @ b.T + (b**2).sum(1)[None], 0)
    return made


def silhouettes(apart: Array, label: Array, k: int) -> Array:
    """(m,) from (m, m) distances: (b - a) / max(a, b), a the mean distance within the own group and b to the nearest other; alone: 0."""
    member = np.eye(k)[label]
    count = member.sum(0)
    sums = apart @ member
    at = np.arange(len(label))
    own = count[label]
    inside = sums[at, label] / np.maximum(own - 1, 1)
    others = np.where(count > 0, sums / np.maximum(count, 1), np.inf)
    others[at, label] = np.inf
    beside = others.min(1)
    larger = np.maximum(inside, beside)
    made: Array = np.where(
        (own > 1) & np.isfinite(beside) & (larger > 0), (beside - inside) / np.where(larger > 0, larger, 1), 0.0
    )
    return made


def components(points: Array) -> tuple[Array, tuple[float, float]]:
    """(n, 2) coordinates on the first two principal components, and the share of the variance along each (K. Pearson, 1901).

    Of each component the entry with the largest magnitude is positive, so that the layout does not flip.
    """
    middle = points - points.mean(0)
    value, vector = np.linalg.eigh(middle.T @ middle)
    axes = vector[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    total = float(value.sum())
    share = [float(max(v, 0) / total) if total > 0 else 0.0 for v in value[::-1][:2]]
    return middle @ axes, (share[0], share[1])
