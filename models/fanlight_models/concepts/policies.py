"""Which concept to ask about next.

| policy | asks about |
|---|---|
| random | any concept that was not asked about, each as likely |
| uncertainty | the one whose probability, given all answers so far, is nearest to 1/2 |
| expected-gain | the one whose answer would make the prediction most likely right, or least uncertain; yes and no weighed by their probability |
"""

from __future__ import annotations

import torch
from torch import Tensor

from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.protocol import SAMPLES, ConceptModel, Outcome, Reading
from fanlight_models.concepts.strategies import Strategy

POLICIES = ("random", "uncertainty", "expected-gain")
GOALS = ("correctness", "entropy")
NEVER = -torch.inf


def random_order(pictures: int, concepts: int, seed: int) -> Tensor:
    """(B, K) scores whose order is a uniform permutation for each picture."""
    return torch.rand(pictures, concepts, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def uncertainty(outcome: Outcome) -> Tensor:
    """(B, K): minus the distance of each probability to 1/2."""
    return -(outcome.concepts - 0.5).abs()


def certainty(classes: Tensor, goal: str) -> Tensor:
    """How sure a prediction (..., C) is: probability of the best class, or minus the entropy in nats."""
    if goal == "correctness":
        return classes.amax(-1)
    if goal == "entropy":
        negative: Tensor = torch.special.xlogy(classes, classes).sum(-1)
        return negative
    raise ValueError(f"“{goal}” is no goal. Goals: {', '.join(GOALS)}.")


def expected_gain(
    model: ConceptModel,
    reading: Reading,
    answers: Answers,
    strategy: Strategy | None = None,
    *,
    goal: str = "correctness",
    samples: int = SAMPLES,
    seed: int = 0,
    only: Tensor | None = None,
) -> Tensor:
    """(B, K): expected certainty after one more answer, minus that now; -inf for what was asked about.

    P(yes) certainty(after yes) + P(no) certainty(after no) - certainty(now), each branch computed in full. `only` (B, K): concepts to look at,
    others are -inf too. The reading may cover several pictures; each asks 2 K interventions."""
    now = model.intervene(reading, answers, strategy, samples=samples, seed=seed)
    base = certainty(now.classes, goal)
    open_ = ~answers.asked if only is None else ~answers.asked & only
    gain = torch.full_like(reading.mean, NEVER)
    for picture in range(len(reading.mean)):
        places = open_[picture].nonzero()[:, 0]
        if not len(places):
            continue
        rows = torch.full((2 * len(places),), picture)
        said = torch.cat([torch.ones(len(places)), torch.zeros(len(places))]).double()
        asked = Answers(answers.value[rows], answers.known[rows], answers.asked[rows]).with_(places.repeat(2), said)
        after = certainty(
            model.intervene(reading.rows(rows), asked, strategy, samples=samples, seed=seed).classes, goal
        )
        yes, no = after.chunk(2)
        p = now.concepts[picture, places]
        gain[picture, places] = p * yes + (1 - p) * no - base[picture]
    return gain


def chosen(scores: Tensor, asked: Tensor) -> Tensor:
    """(B,): the concept of highest score (B, K) that was not asked about; the first of equal ones. -1 where all were."""
    open_ = torch.where(asked, NEVER, scores)
    return torch.where(asked.all(1), -1, open_.argmax(1))
