"""Chance and angles that give the same numbers on every platform.

Only the raw 64-bit stream of PCG64 is used, whose values numpy promises not to change; distributions, whose values it
may change, are made here. Sines come from a sum of products and not from the C library, whose last digit differs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Chance:
    """A stream of random numbers that `key` determines (non-negative integers)."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))
        self._kept: list[int] = []

    def unit(self) -> float:
        """Uniform in [0, 1), 53 bits."""
        if not self._kept:
            self._kept = self._bits.random_raw(64).tolist()
        return (self._kept.pop() >> 11) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.unit()

    def below(self, n: int) -> int:
        """One of 0 .. n - 1."""
        return int(self.unit() * n)

    def happens(self, p: float) -> bool:
        return self.unit() < p

    def pick(self, weights: Sequence[float]) -> int:
        """The place of one of `weights`, which sum to 1."""
        u = self.unit()
        for i, w in enumerate(weights):
            u -= w
            if u < 0:
                return i
        return len(weights) - 1


def _sine(degrees: float) -> float:
    x = degrees * 0.017453292519943295
    term = total = x
    for k in range(1, 14):
        term = -term * x * x / ((2 * k) * (2 * k + 1))
        total += term
    return total


_SINE = tuple(_sine(d if d <= 180 else d - 360) for d in range(360))


def sin(degrees: int) -> float:
    return _SINE[degrees % 360]


def cos(degrees: int) -> float:
    return _SINE[(degrees + 90) % 360]
