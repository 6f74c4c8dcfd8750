"""What an artifact `words` says for its pair of words, its rule of redundancy and its band of log-SNR: numpy of `fanlight_models.diffusion`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fanlight.artifact import Artifact

Array = np.ndarray[Any, np.dtype[Any]]
SHOWN = ("a", "b", "both")
ATOMS = ("redundant", "unique_a", "unique_b", "synergy")
NAMES = (*SHOWN, *ATOMS)
DISPLAYED = 99.0  # percentile that the last colour stands for


class Read:
    """maps: name -> (h, w) nats per latent pixel, the seven of `NAMES`. errors: their standard errors. told: name -> signed value of
    the picture and its standard error, nats, of the same three. titles: name -> words."""

    def __init__(self, artifact: Artifact):
        self.meta, self.arrays = artifact.meta, artifact.arrays
        alpha, band = self.arrays["alpha"], self.meta["band"]
        self.inside = np.ones(len(alpha)) if band is None else ((alpha >= band[0]) & (alpha <= band[1])).astype(float)
        a, b = self.meta["pair"]
        names = [w[2] for w in self.meta["words"]]
        self.a, self.b = names[a], names[b]
        i, j, of_i, of_j, of_both = next(p for p in self.meta["pairs"] if p[:2] == sorted((a, b)))
        self.contrasts = (of_i, of_j, of_both) if (i, j) == (a, b) else (of_j, of_i, of_both)
        one, other, both = (self.map(m) for m in self.contrasts)
        found = (one, other, both, *atoms(one, other, both, self.meta["rule"], self.meta["chances"]))
        self.maps = dict(zip(NAMES, found, strict=True))
        self.errors = self._errors(first(one, other, self.meta["rule"], self.meta["chances"]))
        self.told = {n: self.signed(m) for n, m in zip(SHOWN, self.contrasts, strict=True)}
        words = (self.a, self.b, "both", "redundant", f"unique: {self.a}", f"unique: {self.b}", "synergy")
        self.titles = dict(zip(NAMES, words, strict=True))

    def _terms(self, m: int) -> Array:
        """(P, h, w), whose mean is the map."""
        kept: Array = self.arrays["terms"][m].astype(np.float64) * self.inside[:, None, None]
        return kept

    def _errors(self, first: Array) -> dict[str, Array]:
        """An atom is a sum of terms; redundancy picks those of one word at each place, of the first where `first` says so."""
        one, other, both = (self._terms(m) for m in self.contrasts)
        shared = np.where(first, one, other)
        atoms = (shared, one - shared, other - shared, both - one - other + shared)
        return {name: deviation(terms) for name, terms in zip(NAMES, (one, other, both, *atoms), strict=True)}

    def error(self, m: int) -> Array:
        """(h, w), standard error of the map of a contrast."""
        return deviation(self._terms(m))

    def map(self, m: int) -> Array:
        """(h, w) of a contrast, nats per latent pixel."""
        found: Array = self._terms(m).mean(0)
        return found

    def signed(self, m: int) -> tuple[float, float]:
        """Of a contrast, of the whole picture in nats, and its standard error."""
        terms = self.arrays["signed"][m] * self.inside
        return float(terms.mean()), float(deviation(terms))

    def interaction(self) -> tuple[float, float]:
        """Signed i12 - i1 - i2, synergy less redundancy whatever the rule, and its standard error: below 0 where the words repeat each other."""
        of_a, of_b, of_both = (self.arrays["signed"][m] * self.inside for m in self.contrasts)
        terms = of_both - of_a - of_b
        return float(terms.mean()), float(deviation(terms))

    def contradicted(self, name: str) -> bool:
        """Whether the words change the prediction and make it worse: the map is sure, the signed value not above 0."""
        sums = self._terms(self.contrasts[SHOWN.index(name)]).sum((1, 2))
        return bool(sums.mean() > 2 * deviation(sums)) and self.told[name][0] <= 0

    def calibrated(self, name: str) -> bool:
        """Whether the sum of the map equals the information on average: only where the fuller side is the prompt that the picture was drawn
        from, without guidance."""
        drawn = self.meta["drawn"]
        plain = drawn is not None and drawn["guidance"] == 1 and not self.meta.get("caveat")
        return bool(name == "both" and self.meta["context"] and plain)

    def curves(self) -> dict[str, list[float]]:
        """The integrand over log-SNR, nats per unit of it, of the whole picture: signed and of the maps, of each of the three contrasts."""
        weight = self.arrays["weight"]
        found = {"alpha": [float(f"{v:.4g}") for v in self.arrays["alpha"]]}
        for name, m in zip(SHOWN, self.contrasts, strict=True):
            maps = self.arrays["terms"][m].astype(np.float64).sum((1, 2))
            for kind, values in (("signed", self.arrays["signed"][m]), ("map", maps)):
                found[f"{name}_{kind}"] = [float(f"{v:.4g}") for v in values / weight]
        return found

    @property
    def top(self) -> float:
        """What the last colour of all maps stands for."""
        sizes = np.abs(np.stack(list(self.maps.values())))
        found = float(np.percentile(sizes, DISPLAYED))
        return found or float(sizes.max()) or 1.0


def atoms(
    one: Array, other: Array, both: Array, rule: str, chances: Sequence[float] | None
) -> tuple[Array, Array, Array, Array]:
    """Redundant, unique of either and synergistic: the smaller of two informations, or the pointwise rule with the words' probabilities, equal
    ones where none are given."""
    if rule == "min":
        shared = np.minimum(one, other)
    else:
        h = [-math.log(p) for p in chances] if chances else [0.0, 0.0]
        shared = np.maximum(one - (h[0] - min(h)), other - (h[1] - min(h)))
    return shared, one - shared, other - shared, both - one - other + shared


def first(one: Array, other: Array, rule: str, chances: Sequence[float] | None) -> Array:
    """Where redundancy is the information of the first word, less a constant, rather than that of the second; bool."""
    if rule == "min":
        return np.asarray(one <= other)
    h = [-math.log(p) for p in chances] if chances else [0.0, 0.0]
    return np.asarray(one - h[0] >= other - h[1])


def deviation(terms: Array) -> Array:
    """Standard error of the mean of terms (P, ...) of neighbouring strata, from differences between neighbours: the deviation over all would count
    the shape of the integrand as noise."""
    count = len(terms)
    found: Array = np.sqrt(((terms[1:] - terms[:-1]) ** 2).sum(0) / (2 * count * max(count - 1, 1)))
    return found
