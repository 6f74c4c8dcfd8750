"""Figures of a sweep with their intervals: shares, the distribution of faithfulness. Pure functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fanlight import wire

Array = np.ndarray[Any, np.dtype[Any]]

Z = 1.959964
"""Standard normal, 97.5 %."""
BINS = 24
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
     2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)  # fmt: skip
"""Student's t, 97.5 %, with 1 to 30 degrees of freedom; beyond that `Z` corrected (Cornish and Fisher, 1938)."""


def portion(count: int, n: int) -> wire.Portion:
    """`count` of `n` with its 95 % interval by E. B. Wilson, 1927."""
    if n == 0:
        return wire.Portion(count=0, n=0)
    p = count / n
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return wire.Portion(count=count, n=n, value=p, lo=max(0.0, float(middle - half)), hi=min(1.0, float(middle + half)))


def quantile_t(freedom: int) -> float:
    """Student's t, 97.5 %."""
    if freedom <= len(T):
        return T[freedom - 1]
    return Z + (Z**3 + Z) / (4 * freedom) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)


def faithful(values: Sequence[float], above: int) -> wire.Faithful:
    """The distribution of faithfulness; `above`: how many are above their own floor by their own interval."""
    n = len(values)
    if n == 0:
        return wire.Faithful(n=0, above=portion(0, 0))
    x = np.asarray(values, dtype=np.float64)
    lo, hi = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    if lo == hi:
        lo, hi = -1.0, 1.0
    counts, edges = np.histogram(x, bins=_edges(lo, hi))
    mean = float(x.mean())
    half = quantile_t(n - 1) * float(x.std(ddof=1)) / np.sqrt(n) if n > 1 else None
    q = [float(v) for v in np.quantile(x, (0.25, 0.5, 0.75))]
    return wire.Faithful(
        n=n,
        mean=mean,
        lo=None if half is None else mean - float(half),
        hi=None if half is None else mean + float(half),
        quartiles=(q[0], q[1], q[2]),
        edges=[float(e) for e in edges],
        counts=[int(c) for c in counts],
        above=portion(above, n),
    )


def _edges(lo: float, hi: float) -> Array:
    """Edges of equal width over lo..hi, one of them at 0, so that no bar stands on both sides of the floor."""
    raw = (hi - lo) / BINS
    size = 10.0 ** np.floor(np.log10(raw))
    width = float(min((m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw), key=float))
    first, last = int(np.floor(lo / width)), int(np.ceil(hi / width))
    made: Array = np.arange(first, max(last, first + 1) + 1) * width
    return made
