"""What two words say redundantly (R), each alone (U), and only together (S): i1 = R + U1, i2 = R + U2, i12 = R + U1 + U2 + S.

Two rules for R:

- `min` (default): the smaller of the two informations, at every pixel. On non-negative (orthogonal) maps; R and U cannot be negative then.
- `pointwise`: the rule of DiffusionPID as we reconstructed it [RECALLED, not verified against the paper]: r = min_k h_k - min_k (h_k - i_k), with
  h_k = -log p(word k). That is max_k (i_k - (h_k - min h)) [OWN]: with equal word probabilities the *larger* information; with unequal ones
  nearly always that of the likelier word, because h is nats and a pixel's i is a hundredth of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fanlight_models.diffusion.plan import Plan, Quad
from fanlight_models.diffusion.readings import Estimate, Readings

RULES = ("min", "pointwise")
Probabilities = Literal["uniform"] | Mapping[str, float] | Sequence[float]


@dataclass(frozen=True, eq=False)
class Atoms:
    """Of one number or one map each: redundant, unique of the first and of the second word, synergistic."""

    redundant: Tensor
    unique_a: Tensor
    unique_b: Tensor
    synergy: Tensor

    def joint(self) -> Tensor:
        """i12 again."""
        return self.redundant + self.unique_a + self.unique_b + self.synergy


def surprisals(words: Sequence[str], probabilities: Probabilities = "uniform") -> tuple[float, ...]:
    """-log p of each word in nats.

    Args: probabilities: "uniform" (equal, so that 0 stands for all); a table of words; or one number per word.
    Errors: ValueError for a word that is not in the table, or a probability that is none."""
    if probabilities == "uniform":
        return (0.0,) * len(words)
    if isinstance(probabilities, Mapping):
        table = {k.casefold(): v for k, v in probabilities.items()}
        missing = [w for w in words if w.casefold() not in table]
        if missing:
            raise ValueError(f"The table has no probability of “{missing[0]}”; add it, or choose uniform.")
        values = [table[w.casefold()] for w in words]
    else:
        values = [float(p) for p in probabilities]
    if len(values) != len(words):
        raise ValueError(f"{len(words)} words need as many probabilities, not {len(values)}.")
    if not all(0 < p <= 1 for p in values):
        raise ValueError("Probabilities of words lie above 0 and up to 1.")
    return tuple(-math.log(p) for p in values)


def atoms(
    one: Tensor, other: Tensor, both: Tensor, rule: str = "min", surprisal: Sequence[float] = (0.0, 0.0)
) -> Atoms:
    """From i1, i2, i12 of any equal shape. Errors: ValueError for an unknown rule."""
    if rule == "min":
        shared = torch.minimum(one, other)
    elif rule == "pointwise":
        least = min(surprisal)
        shared = torch.maximum(one - (surprisal[0] - least), other - (surprisal[1] - least))
    else:
        raise ValueError(f"“{rule}” is no rule of redundancy. Rules: {', '.join(RULES)}.")
    return Atoms(shared, one - shared, other - shared, both - one - other + shared)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Of two words. a, b, ab: the informations the maps are made of; maps: atoms per latent pixel. signed: the same three by the signed
    estimator, whose totals are the honest ones. localised: sum over pixels of the maps, the headline: two words that share no pixel are not
    redundant. image: atoms of the signed totals, which call two independent words redundant that say equally much.
    interaction: i12 - i1 - i2 = S - R by the signed estimator, whatever the rule, with its own error: below 0 where the words repeat each other,
    above 0 where they are more than their sum."""

    a: Estimate
    b: Estimate
    ab: Estimate
    maps: Atoms
    signed: tuple[Estimate, Estimate, Estimate]
    localised: Atoms
    image: Atoms
    interaction: Estimate


def decompose(
    readings: Readings,
    quad: Quad,
    *,
    rule: str = "min",
    surprisal: Sequence[float] = (0.0, 0.0),
    estimator: str = "orthogonal",
    band: tuple[float, float] | None = None,
) -> Decomposition:
    """The atoms of a pair from what is stored. Errors: ValueError as of `Readings.contrast` and `atoms`."""
    a, b, ab = (readings.contrast(quad.base, c, estimator, band) for c in (quad.a, quad.b, quad.ab))
    sa, sb, sab = (readings.contrast(quad.base, c, "signed", band) for c in (quad.a, quad.b, quad.ab))
    maps = atoms(a.map, b.map, ab.map, rule, surprisal)
    sums = Atoms(*(m.sum() for m in (maps.redundant, maps.unique_a, maps.unique_b, maps.synergy)))
    between = readings.combination({quad.a: 1.0, quad.b: 1.0, quad.base: -1.0, quad.ab: -1.0}, band)
    total_a, total_b, total_ab = (torch.tensor(e.total, dtype=torch.float64) for e in (sa, sb, sab))
    return Decomposition(
        a, b, ab, maps, (sa, sb, sab), sums, atoms(total_a, total_b, total_ab, rule, surprisal), between
    )


def matrix(
    readings: Readings, plan: Plan, *, rule: str = "min", probabilities: Probabilities = "uniform",
    estimator: str = "orthogonal",
) -> dict[str, Tensor]:  # fmt: skip
    """All pairs of a plan's n words: (n, n) localised `redundant` and `synergy`, symmetric with an empty (NaN) diagonal; `unique`, row i column j:
    what word i says beyond word j; `alone` (n,): signed total of each word, `error` (n,): its standard error."""
    n, words = len(plan.words), [w.text for w in plan.words]
    h = surprisals(words, probabilities)
    out = {name: torch.full((n, n), torch.nan, dtype=torch.float64) for name in ("redundant", "unique", "synergy")}
    for (i, j), quad in plan.pairs.items():
        found = decompose(readings, quad, rule=rule, surprisal=(h[i], h[j]), estimator=estimator).localised
        for name, value in (("redundant", found.redundant), ("synergy", found.synergy)):
            out[name][i, j] = out[name][j, i] = float(value)
        out["unique"][i, j], out["unique"][j, i] = float(found.unique_a), float(found.unique_b)
    each = [readings.contrast(*single, estimator="signed") for single in plan.singles]
    out["alone"] = torch.tensor([e.total for e in each], dtype=torch.float64)
    out["error"] = torch.tensor([e.total_error for e in each], dtype=torch.float64)
    return out


def unsure(estimate: Estimate) -> Tensor:
    """(h, w) bool: pixels whose value is less than two standard errors from 0."""
    return estimate.map.abs() < 2 * estimate.error


def contradicted(signed: Estimate, orthogonal: Estimate) -> bool:
    """The words change the prediction and make it worse: large orthogonal, signed not above 0. The orthogonal estimator alone cannot tell a word
    that is in the picture from one that is not."""
    return orthogonal.total > 2 * orthogonal.total_error and signed.total <= 0
