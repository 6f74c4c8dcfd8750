"""The bottleneck without covariance (Koh et al., ICML 2020): hard, whose head sees drawn 0 and 1, and soft, whose head sees logits.

The hard one is a stochastic bottleneck whose logits have no spread, and is computed by the same code.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fanlight_models.concepts import drawing, losses as lose
from fanlight_models.concepts.answers import Answers, branches
from fanlight_models.concepts.gaussian import SURE
from fanlight_models.concepts.heads import Head, averaged_loss, class_probabilities
from fanlight_models.concepts.losses import Losses
from fanlight_models.concepts.protocol import SAMPLES, Outcome, Reading
from fanlight_models.concepts.strategies import Strategy


class CBM(nn.Module):
    """K independent concepts, C classes.

    Args:
        encoder: (B, ...) -> (B, F), with attribute `width`.
        soft: the head sees the logits of the concepts instead of draws of 0 and 1.
        hidden: units of the head's hidden layer; 0: linear.
    """

    table: Tensor

    def __init__(self, encoder: nn.Module, concepts: int, classes: int, soft: bool = False, hidden: int = 0):
        super().__init__()
        self.kind = "soft-cbm" if soft else "hard-cbm"
        self.concepts, self.classes, self.soft = concepts, classes, soft
        self.encoder = encoder
        self.mean = nn.Linear(int(encoder.width), concepts)  # type: ignore[arg-type]
        self.head = Head(concepts, classes, hidden)
        self.register_buffer("table", torch.zeros(2, concepts))

    def begin(self, concepts: Tensor) -> None:
        """Nothing is taken from the labels."""

    def concept_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.encoder, self.mean):
            yield from part.parameters()

    def losses(
        self, x: Tensor, concepts: Tensor, labels: Tensor, stage: str, tau: float = 1.0, samples: int = SAMPLES
    ) -> Losses:
        """As `SCBM.losses`."""
        zero = torch.zeros(())
        if stage == "target-on-truth":
            said = (2 * concepts - 1) * SURE if self.soft else concepts
            return Losses(averaged_loss(self.head(said.to(self.head.dtype))[:, None], labels), zero, zero)
        with torch.set_grad_enabled(stage != "target"):
            logits = self.mean(self.encoder(x))
        own = zero if stage == "target" else lose.plain_concept_loss(logits, concepts)
        if stage == "concepts":
            return Losses(zero, own, zero)
        if self.soft:
            return Losses(averaged_loss(self.head(logits)[:, None], labels), own, zero)
        wide = logits[:, None].expand(-1, samples, -1)
        drawn = lose.hard(wide) if stage == "target" else lose.relaxed(wide, tau)
        return Losses(averaged_loss(self.head(drawn), labels), own, zero)

    @torch.no_grad()
    def read(self, x: Tensor) -> Reading:
        """x (B, ...) -> logits in float64, no covariance."""
        return Reading(self.mean(self.encoder(x)).double())

    def intervene(
        self,
        reading: Reading,
        answers: Answers,
        strategy: Strategy | None = None,
        *,
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> Outcome:
        """`protocol.ConceptModel`. No strategy moves other concepts. The hard one enters answers as 0 and 1; the soft one has to turn them into
        logits and takes a percentile strategy (default: percentile). Errors: ValueError for a strategy that has no meaning for it."""
        if not self.soft:
            return drawing.intervene(reading, self.head, answers, Strategy("hard"), None, samples, seed)
        chosen = strategy or Strategy("percentile")
        if chosen.name not in ("percentile", "empirical-percentile"):
            raise ValueError(
                f"The head of a soft CBM sees logits; “{chosen.name}” gives it none. Strategies: percentile, empirical-percentile."
            )
        every = branches(answers, seed)
        low, high = self._logits(chosen)
        mean = torch.where(every.known, torch.where(every.value > 0, high, low), reading.mean[every.row])
        with torch.no_grad():
            classes = class_probabilities(self.head(mean.to(self.head.dtype))).double()
        concepts = torch.where(every.known, every.value, torch.sigmoid(mean))
        pictures = len(reading.mean)
        own = every.mean(classes, pictures)
        nothing = torch.zeros_like(reading.mean)
        return Outcome(
            every.mean(concepts, pictures), nothing, own, torch.zeros_like(own), every.mean(mean, pictures), nothing.clone(),
            torch.zeros_like(nothing, dtype=torch.bool), nothing.new_zeros(pictures), 0,
        )  # fmt: skip

    def _logits(self, strategy: Strategy) -> tuple[Tensor, Tensor]:
        if strategy.name == "percentile":
            high = torch.full((self.concepts,), SURE, dtype=torch.float64)
            return -high, high
        if not bool(self.table.any()):
            raise ValueError("This model has no percentiles of its training data; they are taken after training.")
        return self.table[0].double(), self.table[1].double()

    def weights(self) -> Tensor | None:
        """Of a linear head on hard concepts; the soft one's head is not linear in probabilities."""
        return None if self.soft else self.head.weights()
