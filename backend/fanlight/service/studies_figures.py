"""Figures of a study: means over seeds, their intervals, the same brought to 0 to 1 over the table. Pure functions of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fanlight.service.sweeps_figures import quantile_t

Array = np.ndarray[Any, np.dtype[Any]]

RESAMPLES = 2_000
FEWEST = 2
"""Seeds from which there is an interval."""


@dataclass(frozen=True, eq=False)
class Figures:
    """Of every cell, NaN where nothing is known: `n` (cells,) finished seeds; `mean`, `lo`, `hi`, in the unit of the values; `normalised` with its
    interval, 0 to 1."""

    n: Array
    mean: Array
    lo: Array
    hi: Array
    normalised: Array
    normalised_lo: Array
    normalised_hi: Array


def figures(values: Array, seed: int = 0) -> Figures:
    """Args: values: (N, cells) of N seeds, NaN where nothing is known; seed: of the resampling.

    Intervals are 95 % percentile bootstrap over seeds (Efron, 1979), widened for few of them as Hesterberg (2015) [RECALLED] does: the percentiles
    are those that a Student's interval of N seeds has of a normal distribution. All cells take the same resampled seeds, because pictures of a
    seed share their noise; for a normalised value the ends of the table are resampled too.
    """
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    n = known.sum(0)
    mean = _mean(np.ones((1, len(values))), filled, known)[0]
    lo, hi, normal_lo, normal_hi = (np.full_like(mean, np.nan) for _ in range(4))
    made = Figures(n, mean, lo, hi, normalised(mean[None])[0], normal_lo, normal_hi)
    most = int(n.max(initial=0))
    if most < FEWEST:
        return made
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    weight = np.stack([np.bincount(d, minlength=len(values)) for d in draws]).astype(np.float64)
    again = _mean(weight, filled, known)  # (RESAMPLES, cells)
    tail = share(most)
    enough = n >= FEWEST
    for target, sample in (
        ((made.lo, made.hi), again),
        ((made.normalised_lo, made.normalised_hi), normalised(again)),
    ):
        for end, part in zip(target, (tail, 1 - tail), strict=True):
            end[enough] = _quantile(sample[:, enough], part)
    return made


def share(n: int) -> float:
    """The lower tail of the bootstrap distribution of a mean of n values that an interval of 95 % leaves out."""
    return 0.5 * math.erfc(math.sqrt(n / (n - 1)) * quantile_t(n - 1) / math.sqrt(2))


def normalised(means: Array) -> Array:
    """(..., cells) brought to 0..1 over the cells that are known; 0 where all are equal."""
    known = ~np.isnan(means)
    low = np.where(known, means, np.inf).min(-1, keepdims=True)
    high = np.where(known, means, -np.inf).max(-1, keepdims=True)
    span = high - low
    with np.errstate(invalid="ignore"):
        found: Array = np.where(known, np.where(span > 0, (means - low) / np.where(span > 0, span, 1.0), 0.0), np.nan)
    return found


def _mean(weight: Array, filled: Array, known: Array) -> Array:
    """(R, N), (N, cells) -> (R, cells); NaN where no known value has weight."""
    count = weight @ known
    found: Array = np.where(count > 0, weight @ filled / np.where(count > 0, count, 1.0), np.nan)
    return found


def _quantile(sample: Array, part: float) -> Array:
    """Over rows, of those that are known; every column has some."""
    found: Array = np.nanquantile(sample, part, axis=0)
    return found
