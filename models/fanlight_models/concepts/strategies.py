"""Which logit an answer stands for, when the Gaussian of the others is conditioned on it.

| strategy | logit |
|---|---|
| percentile | +-2.944439, the logit of 0.95 or 0.05, for every concept |
| empirical-percentile | the 95th or 5th percentile, per concept, of the probabilities that the model gives on its training data |
| confidence-region | the most agreeable logits inside the region that the model holds possible (`confidence`) |
| hard | none: the answer enters the head and nothing else moves |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from fanlight_models.concepts.condition import Answered
from fanlight_models.concepts.confidence import LEVEL, Region, region
from fanlight_models.concepts.gaussian import SURE

STRATEGIES = ("percentile", "empirical-percentile", "confidence-region", "hard")
EDGE = 1e-6  # of a probability before its logit is taken


@dataclass(frozen=True)
class Strategy:
    """name: one of `STRATEGIES`; level: of the confidence region, between 0 and 1. Errors: ValueError."""

    name: str = "confidence-region"
    level: float = LEVEL

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise ValueError(f"“{self.name}” is no strategy. Strategies: {', '.join(STRATEGIES)}.")
        if not 0 < self.level < 1:
            raise ValueError(f"A confidence level lies between 0 and 1, not {self.level}.")

    @property
    def moves(self) -> bool:
        """Whether other concepts move."""
        return self.name != "hard"


@dataclass(frozen=True, eq=False)
class Logits:
    """logits (R, n) that answers stand for; against (R, n): the logit lies on the other side of the model's own than the answer does, so
    that correlated concepts move against it (the percentiles know no such bound). region: what the solver found."""

    logits: Tensor
    against: Tensor
    region: Region | None = field(default=None)


def percentiles(probabilities: Tensor) -> Tensor:
    """(n, K) probabilities on training data -> (2, K) logits of their 5th and 95th percentile, float64."""
    ordered = probabilities.double().sort(0).values
    place = torch.tensor([0.05, 0.95], dtype=torch.float64) * (len(ordered) - 1)
    below = place.floor().long()
    above, share = (below + 1).clamp_max(len(ordered) - 1), (place - below)[:, None]
    found = ordered[below] * (1 - share) + ordered[above] * share
    return torch.logit(found.clamp(EDGE, 1 - EDGE))


def logits(
    strategy: Strategy, answers: Answered, value: Tensor, mean: Tensor, covariance: Tensor, table: Tensor | None
) -> Logits:
    """Of R rows: value (R, K) in {0, 1}, mean (R, K), covariance (R, K, K), table (2, K) or None (`percentiles`).

    Errors: ValueError where the empirical percentiles are asked for and the model has none."""
    said, own = answers.pick(value), answers.pick(mean)
    found: Region | None = None
    if strategy.name == "confidence-region":
        found = region(own, answers.block(covariance), said, answers.valid, strategy.level)
        chosen = found.logits
    elif strategy.name == "empirical-percentile":
        if table is None:
            raise ValueError("This model has no percentiles of its training data; they are taken after training.")
        low, high = (row.to(mean)[answers.index] for row in table)
        chosen = torch.where(said > 0, high, low)
    else:
        chosen = (2 * said - 1) * SURE
    chosen = torch.where(answers.valid, chosen, 0.0)
    return Logits(chosen, answers.valid & ((chosen - own) * (2 * said - 1) < 0), found)
