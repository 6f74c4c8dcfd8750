"""What can be known about the concepts of a picture: the exact posterior of the table, given the groups that can be seen.

The table is a mixture of 192 products (species and state), so that the posterior is one, with other weights: exact by enumeration. What the
picture shows is taken as known and what it hides as unknown; a few pixels that stick out from behind a leaf are not counted as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide.table import (
    CONCEPTS,
    COUPLED,
    GROUP,
    GROUPS,
    SPECIES,
    STARTS,
    STATES,
    prior,
    probabilities,
    vector,
)

Floats = NDArray[np.float64]
Values = NDArray[np.int64]
Flags = NDArray[np.bool_]


@lru_cache(1)
def _components() -> tuple[Floats, Floats]:
    """log prior (192,) and P(concept | component) (192, concepts)."""
    n = len(SPECIES) * len(STATES)
    return np.log(prior()).ravel(), np.concatenate([p.reshape(n, -1) for p in probabilities()], axis=1)


@lru_cache(1)
def _owner() -> Values:
    """(concepts,): the group of each concept."""
    return np.repeat(np.arange(len(GROUPS)), [len(g.values) for g in GROUPS])


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known of n pictures. values (n, groups), known (n, groups): which of them count as evidence, weights (n, 192)."""

    values: Values
    known: Flags
    weights: Floats

    def concepts(self) -> Floats:
        """(n, concepts): P(concept | what is known); 0 or 1 in known groups."""
        p = self.weights @ _components()[1]
        return np.where(self.known[:, _owner()], vector(self.values), p)

    def species(self) -> Floats:
        """(n, 24): P(species | what is known)."""
        return np.asarray(self.weights.reshape(-1, len(SPECIES), len(STATES)).sum(2), np.float64)

    def knowing(self, known: Flags) -> Belief:
        """The same pictures with more groups, or other groups, known."""
        return believe(self.values, known)

    def covariance(self) -> Floats:
        """(concepts, concepts): covariance of the concepts given a picture, mean over the pictures."""
        table, owner = _components()[1], _owner()
        p, hidden = self.concepts(), ~self.known[:, owner]
        total = np.zeros((len(CONCEPTS), len(CONCEPTS)))
        same = owner[:, None] == owner
        for w, mean, free in zip(self.weights, p, hidden, strict=True):
            some = np.flatnonzero(free)
            if not some.size:
                continue
            part = table[:, some]
            both = (part * w[:, None]).T @ part
            inside = same[np.ix_(some, some)]
            both[inside] = 0
            both[np.arange(some.size), np.arange(some.size)] = mean[some]
            total[np.ix_(some, some)] += both - np.outer(mean[some], mean[some])
        return total / len(p)


def believe(values: Values, known: Flags) -> Belief:
    """The posterior of pictures whose values (n, groups) are known where `known` (n, groups) says so."""
    start, table = _components()
    evidence = vector(values) & known[:, _owner()]
    log = start + evidence.astype(np.float64) @ np.log(table).T
    weights = np.exp(log - log.max(1, keepdims=True))
    return Belief(values, known, weights / weights.sum(1, keepdims=True))


def bayes_rate(values: Values, known: Flags | None = None) -> float:
    """The accuracy of the best classifier of species that sees these concepts (default: all of them): mean largest posterior."""
    known = np.ones(values.shape, bool) if known is None else known
    return float(believe(values, known).species().max(1).mean())


def correlation(covariance: Floats) -> Floats:
    """Covariance -> correlation; 0 where a concept does not vary."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0))
    scale = np.outer(deviation, deviation)
    return np.asarray(np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 1e-12), np.float64)


def between(matrix: Floats, first: str, second: str) -> float:
    """The entry of largest size between the concepts of two groups."""
    a, b = (slice(STARTS[GROUP[g]], STARTS[GROUP[g] + 1]) for g in (first, second))
    block = matrix[a, b]
    return float(block.ravel()[np.abs(block).argmax()])


def residual(belief: Belief) -> dict[tuple[str, str], float]:
    """The largest correlation that remains, given the picture, between the concepts of each pair of groups in `COUPLED`."""
    matrix = correlation(belief.covariance())
    return {pair: between(matrix, *pair) for pair in COUPLED}


def remaining(belief: Belief, pairs: tuple[tuple[str, str], ...] | None = None) -> float:
    """How much of the covariance between concepts of different groups (default: of all) remains when the pictures are known, 0 to 1: the ratio
    of two sums of absolute values."""
    apart = _owner()[:, None] != _owner()
    if pairs is not None:
        named = {(GROUP[a], GROUP[b]) for a, b in pairs}
        apart = np.array([[(a, b) in named for b in _owner()] for a in _owner()])
    nothing = believe(belief.values[:1], np.zeros((1, len(GROUPS)), bool))
    return float(np.abs(belief.covariance()[apart]).sum() / np.abs(nothing.covariance()[apart]).sum())


@dataclass(frozen=True, eq=False)
class Interventions:
    """Curves over the number of groups that a person has answered, 0 .. steps, one row a picture: (n, steps + 1).

    concepts: share of the groups hidden in the picture that are right, answered ones included. species: P(true species).
    Each with the true posterior (joint) and with independent concepts that have the same marginals (apart)."""

    concepts_joint: Floats
    concepts_apart: Floats
    species_joint: Floats
    species_apart: Floats

    def gain(self) -> tuple[Floats, Floats]:
        """(n,), (n,): joint minus apart for concepts and for species, mean over the steps after the first."""
        return (
            (self.concepts_joint - self.concepts_apart)[:, 1:].mean(1),
            (self.species_joint - self.species_apart)[:, 1:].mean(1),
        )


def intervene(
    values: Values, seen: Flags, species: Values, *, steps: int = 3, draws: int = 64, seed: int = 0
) -> Interventions:
    """Asks about hidden groups, the most uncertain first, and compares what the answers are worth with and without correlation.

    Both begin with the same marginals and ask by their own uncertainty. Without correlation, P(species) is the mean of the true
    P(species | concepts) over `draws` concept vectors drawn from the product of the marginals. Pictures should hide at least `steps` + 1 groups.
    """
    chance = np.random.default_rng(seed)
    truth, n = vector(values), len(values)
    hidden = np.maximum((~seen).sum(1), 1)
    out = [np.empty((n, steps + 1)) for _ in range(4)]
    start = believe(values, seen)
    marginals = start.concepts()
    joint_known, apart_known = seen.copy(), seen.copy()
    rows = np.arange(n)
    for step in range(steps + 1):
        joint = start.knowing(joint_known)
        p = joint.concepts()
        q = np.where(apart_known[:, _owner()], truth, marginals)
        for probabilities_, place in ((p, 0), (q, 1)):
            right = _right(probabilities_, values)
            out[place][:, step] = (right & ~seen).sum(1) / hidden
        out[2][:, step] = joint.species()[rows, species]
        drawn = _draw(q, draws, chance)
        every = np.ones((n * draws, len(GROUPS)), bool)
        out[3][:, step] = believe(drawn, every).species().reshape(n, draws, -1).mean(1)[rows, species]
        for p_, known in ((p, joint_known), (q, apart_known)):
            doubt = np.where(known, -1.0, 1 - _largest(p_))
            asked = doubt.argmax(1)
            some = doubt[rows, asked] >= 0
            known[rows[some], asked[some]] = True
    return Interventions(*out)


def _largest(p: Floats) -> Floats:
    return np.maximum.reduceat(p, STARTS[:-1], axis=1)


def _right(p: Floats, values: Values) -> Flags:
    """(n, groups): whether the most probable value of each group is the true one."""
    best = np.stack([p[:, a:b].argmax(1) for a, b in zip(STARTS, STARTS[1:], strict=False)], 1)
    return np.asarray(best == values, bool)


def _draw(p: Floats, draws: int, chance: np.random.Generator) -> Values:
    """(n draws, groups): values drawn group by group."""
    u = chance.random((len(p), draws, len(GROUPS)))
    out = np.empty(u.shape, np.int64)
    for g, (a, b) in enumerate(zip(STARTS, STARTS[1:], strict=False)):
        out[..., g] = (u[..., g, None] > p[:, None, a:b].cumsum(2)[..., :-1]).sum(2)
    return out.reshape(-1, len(GROUPS))
