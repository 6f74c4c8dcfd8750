"""How alike two maps are, by the order of their patches, and what chance gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fanlight.comparison import rank_correlation, ranks

Floats = np.ndarray[Any, np.dtype[np.float64]]
T975 = {3: 3.1824463, 7: 2.3646243}
"""97.5 % quantiles of Student's t by degrees of freedom, for as many draws as the checks make."""
GROUPS = 200
RESAMPLED = 1000
MOST = 1 << 20  # patches drawn in all, so that it stays a step


def alike(a: Floats, b: Floats) -> float:
    """Spearman's coefficient, -1..1, and 0 where one of the two puts nothing into an order."""
    found = rank_correlation(a, b)
    return 0.0 if found is None else found


def reading(values: Sequence[float], ends: tuple[float, float]) -> dict[str, float]:
    """The mean of some draws and its 95 % interval by Student's t, cut at the `ends` of the scale."""
    draws = np.asarray(values, dtype=np.float64)
    mean = float(draws.mean())
    reach = T975[len(draws) - 1] * float(draws.std(ddof=1)) / float(np.sqrt(len(draws)))
    return {"value": mean, "lo": max(mean - reach, ends[0]), "hi": min(mean + reach, ends[1])}


def chance(scores: Floats, draws: int, *, absolute: bool) -> dict[str, float]:
    """What the mean of `draws` correlations of `scores`, (R,), with random maps is, and where it lies in 95 % of cases."""
    rng = np.random.default_rng(len(scores))
    own = _centred(ranks(scores))
    if own is None:
        return {"value": 0.0, "lo": 0.0, "hi": 0.0}
    groups = max(50, min(GROUPS, MOST // (len(scores) * draws)))
    others = rng.permuted(np.tile(_unit(len(scores)), (groups * draws, 1)), axis=1)  # (G D, R)
    found = (others @ own).reshape(groups, draws)
    means = (np.abs(found) if absolute else found).mean(1)
    lo, hi = np.quantile(means, [0.025, 0.975])
    return {"value": float(means.mean()), "lo": float(lo), "hi": float(hi)}


def resampled(pairs: Sequence[tuple[Floats, Floats]]) -> dict[str, float]:
    """The mean rank correlation of some pairs of maps, with the 95 % interval of that mean over resampled patches.

    Args:
        pairs: each two maps over the same R patches.
    """
    rng = np.random.default_rng(len(pairs))
    size = len(pairs[0][0])
    drawn = rng.integers(0, size, (max(100, min(RESAMPLED, MOST // size)), size))  # (B, R)
    means = np.zeros(len(drawn))
    for a, b in pairs:
        x, y = (r[drawn] - r[drawn].mean(1, keepdims=True) for r in (ranks(a), ranks(b)))
        both = np.sqrt((x * x).sum(1) * (y * y).sum(1))
        means += np.divide((x * y).sum(1), both, out=np.zeros(len(drawn)), where=both > 0) / len(pairs)
    lo, hi = np.quantile(means, [0.025, 0.975])
    value = float(np.mean([alike(a, b) for a, b in pairs]))
    return {"value": value, "lo": min(float(lo), value), "hi": max(float(hi), value)}


def change(a: Floats, b: Floats) -> float:
    """By how much of the size of `a` the map `b` differs from it: ||b - a|| / ||a||, Euclidean; 0 where both are nothing."""
    size, by = float(np.linalg.norm(a)), float(np.linalg.norm(b - a))
    return by / size if size > 0 else float(by > 0)


def _unit(n: int) -> Floats:
    made = _centred(np.arange(n, dtype=np.float64))
    return np.zeros(n) if made is None else made


def _centred(values: Floats) -> Floats | None:
    shifted = values - values.mean()
    size = float(np.linalg.norm(shifted))
    return None if size == 0 else np.asarray(shifted / size)
