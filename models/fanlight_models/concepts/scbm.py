"""Stochastic concept bottleneck: the concepts' logits have a covariance, so that correcting one moves those that hang together with it.

Vandenhirtz, Laguna, Marcinkevics & Vogt (NeurIPS 2024), written from its equations; docs/concepts.md says where ours differs.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fanlight_models.concepts import drawing, losses as lose
from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.gaussian import Amortized, Empirical, Global, draws, precision_penalty
from fanlight_models.concepts.heads import Head, averaged_loss
from fanlight_models.concepts.losses import Losses
from fanlight_models.concepts.protocol import SAMPLES, Outcome, Reading
from fanlight_models.concepts.strategies import Strategy

COVARIANCES = ("amortized", "global", "empirical")


class SCBM(nn.Module):
    """K concepts with logits N(mu(x), Sigma), C classes by a head on hard concepts.

    Args:
        encoder: (B, ...) -> (B, F), with attribute `width`.
        covariance: amortized (a picture has its own), global (one, trained) or empirical (that of the training labels).
        hidden: units of the head's hidden layer; 0: linear.
    """

    kind = "scbm"
    table: Tensor

    def __init__(self, encoder: nn.Module, concepts: int, classes: int, covariance: str = "amortized", hidden: int = 0):
        super().__init__()
        if covariance not in COVARIANCES:
            raise ValueError(f"“{covariance}” is no covariance. Covariances: {', '.join(COVARIANCES)}.")
        self.concepts, self.classes, self.covariance = concepts, classes, covariance
        self.encoder = encoder
        width = int(encoder.width)  # type: ignore[arg-type]
        self.mean = nn.Linear(width, concepts)
        self.spread: Amortized | Global | Empirical = (
            Amortized(width, concepts)
            if covariance == "amortized"
            else Global(concepts)
            if covariance == "global"
            else Empirical(concepts)
        )
        self.head = Head(concepts, classes, hidden)
        self.register_buffer("table", torch.zeros(2, concepts))

    def begin(self, concepts: Tensor) -> None:
        """What is taken from the training labels (n, K) before training."""
        self.spread.begin(concepts)

    def concept_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.encoder, self.mean, self.spread):
            yield from part.parameters()

    def losses(
        self, x: Tensor, concepts: Tensor, labels: Tensor, stage: str, tau: float = 1.0, samples: int = SAMPLES
    ) -> Losses:
        """x (B, ...), concepts (B, K) in {0, 1}, labels (B,); stage: one of `STAGES`; tau: of relaxed concepts."""
        zero = torch.zeros(())
        if stage == "target-on-truth":
            return Losses(averaged_loss(self.head(concepts.to(self.head.dtype))[:, None], labels), zero, zero)
        with torch.set_grad_enabled(stage != "target"):
            features = self.encoder(x)
            mean, lower = self.mean(features), self.spread(features)
            logits = draws(mean, lower, torch.randn(len(mean), samples, self.concepts))
        if stage == "target":
            return Losses(averaged_loss(self.head(lose.hard(logits)), labels), zero, zero)
        own, precision = (
            lose.concept_loss(logits, concepts),
            precision_penalty(lower) if self.covariance == "amortized" else zero,
        )
        if stage == "concepts":
            return Losses(zero, own, precision)
        return Losses(averaged_loss(self.head(lose.relaxed(logits, tau)), labels), own, precision)

    @torch.no_grad()
    def read(self, x: Tensor) -> Reading:
        """x (B, ...) -> mean and L in float64."""
        features = self.encoder(x)
        return Reading(self.mean(features).double(), self.spread(features).double())

    def intervene(
        self,
        reading: Reading,
        answers: Answers,
        strategy: Strategy | None = None,
        *,
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> Outcome:
        """`protocol.ConceptModel`; the default strategy is the confidence region."""
        table = self.table.double() if bool(self.table.any()) else None
        return drawing.intervene(reading, self.head, answers, strategy or Strategy(), table, samples, seed)

    def weights(self) -> Tensor | None:
        return self.head.weights()
