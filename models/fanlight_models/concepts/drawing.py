"""Interventions on models whose concepts are drawn from a Gaussian of logits, or from independent logits: SCBM and hard CBM are one computation.

Concept probabilities are exact (one-dimensional quadrature). Class probabilities are exact where at most three concepts are open, otherwise means
over M draws with their standard error. Draws have fixed noise: prior paths are bent to the answers, so that only answers change the result.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from fanlight_models.concepts.answers import Answers, Branches, branches
from fanlight_models.concepts.condition import Conditioned, answered, conditioned
from fanlight_models.concepts.gaussian import draws, factorised
from fanlight_models.concepts.heads import Head, class_probabilities
from fanlight_models.concepts.protocol import Outcome, Reading
from fanlight_models.concepts.quadrature import MOST, expected_sigmoid, pattern_probabilities, patterns
from fanlight_models.concepts.strategies import Strategy, logits

CHUNK = 1 << 22  # numbers of one tensor of draws


@lru_cache(4)
def noise(samples: int, concepts: int, seed: int) -> tuple[Tensor, Tensor]:
    """Standard normal z and logistic u, (M, K) each, float64: the chance behind every picture's draws. A concept is drawn where its logit
    exceeds u, which happens with probability sigmoid(logit). Kept, as every answer asks for the same: not to be written to."""
    chance = torch.Generator().manual_seed(seed)
    z = torch.randn(samples, concepts, generator=chance, dtype=torch.float64)
    return z, torch.logit(torch.rand(samples, concepts, generator=chance, dtype=torch.float64))


def intervene(
    reading: Reading,
    head: Head,
    answers: Answers,
    strategy: Strategy,
    table: Tensor | None,
    samples: int,
    seed: int,
    chunk: int = CHUNK,
) -> Outcome:
    """`ConceptModel.intervene`. table (2, K): empirical percentiles, or None."""
    concepts = reading.mean.shape[1]
    if answers.value.shape != reading.mean.shape:
        raise ValueError(f"Answers of shape {tuple(answers.value.shape)} for a reading of {tuple(reading.mean.shape)}.")
    every = branches(answers, seed)
    chance = noise(samples, concepts, seed)
    count = torch.bincount(every.row, minlength=len(reading.mean))
    width = samples * max(concepts, head.outputs)
    parts: list[Outcome] = []
    first, start = 0, 0
    while first < len(reading.mean) or not parts:
        last, rows = first, 0
        while last < len(reading.mean) and (last == first or (rows + int(count[last])) * width <= chunk):
            rows += int(count[last])
            last += 1
        some = slice(start, start + rows)
        part = Branches(every.row[some] - first, every.weight[some], every.value[some], every.known[some], every.drawn)
        parts.append(_some(reading.rows(slice(first, last)), head, part, strategy, table, chance))
        first, start = last, start + rows
    return Outcome.cat(parts)


def _some(
    reading: Reading,
    head: Head,
    rows: Branches,
    strategy: Strategy,
    table: Tensor | None,
    chance: tuple[Tensor, Tensor],
) -> Outcome:
    pictures = len(reading.mean)
    mean = rows.of(reading.mean)
    z, u = chance
    prior = draws(reading.mean, reading.lower, z)
    after: Conditioned | None = None
    against = torch.zeros_like(rows.known)
    jitter = mean.new_zeros(len(mean))
    if reading.lower is not None and strategy.moves:
        covariance = rows.of(reading.covariance())
        said = answered(rows.known)
        chosen = logits(strategy, said, rows.value, mean, covariance, table)
        after = conditioned(mean, covariance, said, chosen.logits)
        mean, variance, jitter = after.mean, after.variance, after.jitter
        against = said.spread(chosen.against, against)
        paths = after.open_paths(rows.of(prior))
    else:
        spread = torch.zeros_like(reading.mean) if reading.lower is None else (reading.lower**2).sum(2)
        variance = torch.where(rows.known, 0.0, rows.of(spread))
        paths = rows.of(prior)
    concepts = torch.where(rows.known, rows.value, expected_sigmoid(mean, variance))
    dtype = head.dtype
    drawn = torch.where(rows.known[:, None], rows.value[:, None].to(dtype), (paths > u).to(dtype))
    with torch.no_grad():
        each = class_probabilities(head(drawn))  # (R, M, C)
    mixed = rows.mean(each, pictures)
    classes, error = mixed.mean(1, dtype=torch.float64), _error(mixed)
    free = ~rows.known
    few = (free.sum(1) <= MOST).nonzero()[:, 0]
    if len(few):
        exact = each.mean(1, dtype=torch.float64)
        for r in few.tolist():
            exact[r] = _exact(
                head, rows.value[r], free[r], mean[r], _lower(reading, after, int(rows.row[r]), r, free[r])
            )
        small = torch.zeros(pictures, dtype=torch.bool).index_fill_(0, rows.row[few], True)
        classes = torch.where(small[:, None], rows.mean(exact, pictures), classes)
        error = torch.where(small[:, None], 0.0, error)
    samples = 0 if not bool((free.sum(1) > MOST).any()) else len(z)
    return Outcome(
        rows.mean(concepts, pictures),
        torch.zeros(pictures, concepts.shape[1], dtype=torch.float64),
        classes,
        error,
        rows.mean(mean, pictures),
        rows.mean(variance.sqrt(), pictures),
        rows.mean(against.double(), pictures) > 0,
        rows.mean(jitter, pictures),
        samples,
    )


def _error(draws_: Tensor) -> Tensor:
    """Standard error of the mean over draws, (B, M, C) -> (B, C); NaN for one draw."""
    return draws_.std(1).double() / math.sqrt(draws_.shape[1])


def _lower(reading: Reading, after: Conditioned | None, picture: int, row: int, free: Tensor) -> Tensor:
    """L of the open concepts of one row, (f, f)."""
    open_ = int(free.sum())
    if reading.lower is None:
        return torch.zeros(open_, open_, dtype=torch.float64)
    whole = after.covariance()[row] if after is not None else reading.covariance()[picture]
    return factorised(whole[free][:, free]).lower


def _exact(head: Head, value: Tensor, free: Tensor, mean: Tensor, lower: Tensor) -> Tensor:
    """P(class), (C,), summed over every pattern of the open concepts."""
    open_ = int(free.sum())
    p = pattern_probabilities(mean[free], lower)
    concepts = value.expand(len(p), -1).clone()
    concepts[:, free] = patterns(open_)
    with torch.no_grad():
        return p @ class_probabilities(head(concepts.to(head.dtype))).double()
