"""Concept embedding model (Espinosa Zarlenga et al., NeurIPS 2022): each concept is a mixture of two embeddings, one for yes and one for no.

With RandInt (p = 0.25) training replaces some probabilities by the truth, so that the head learns what an answer means; the stochastic bottleneck's
authors compare with CEM without it, which is 0 here and the weaker under intervention.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fanlight_models.concepts import losses as lose
from fanlight_models.concepts.answers import Answers, branches
from fanlight_models.concepts.heads import Head, averaged_loss, class_probabilities
from fanlight_models.concepts.losses import Losses
from fanlight_models.concepts.protocol import SAMPLES, Outcome, Reading
from fanlight_models.concepts.strategies import Strategy


class CEM(nn.Module):
    """K concepts as embeddings of `size` numbers, C classes by a head on all of them.

    Args:
        encoder: (B, ...) -> (B, F), with attribute `width`.
        size: numbers of an embedding.
        random: RandInt, the probability with which training shows the head the true concept.
    """

    kind = "cem"

    def __init__(
        self, encoder: nn.Module, concepts: int, classes: int, size: int = 16, random: float = 0.25, hidden: int = 0
    ):
        super().__init__()
        if not 0 <= random <= 1:
            raise ValueError(f"RandInt is a probability, not {random}.")
        self.concepts, self.classes, self.size, self.random = concepts, classes, size, random
        self.encoder = encoder
        width = int(encoder.width)  # type: ignore[arg-type]
        self.yes = nn.Linear(width, concepts * size)
        self.no = nn.Linear(width, concepts * size)
        self.scorer = nn.Linear(2 * size, 1)
        self.head = Head(concepts * size, classes, hidden)

    def begin(self, concepts: Tensor) -> None:
        """Nothing is taken from the labels."""

    def concept_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.encoder, self.yes, self.no, self.scorer):
            yield from part.parameters()

    def embeddings(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, ...) -> embeddings (B, 2, K, size), yes before no, and logits (B, K)."""
        features = self.encoder(x)
        shape = (len(features), self.concepts, self.size)
        both = torch.stack([F.leaky_relu(layer(features)).reshape(shape) for layer in (self.yes, self.no)], 1)
        return both, self.scorer(torch.cat([both[:, 0], both[:, 1]], 2))[..., 0]

    def mixed(self, both: Tensor, p: Tensor) -> Tensor:
        """Embeddings (B, 2, K, size) and probabilities (B, K) -> class logits (B, C)."""
        p = p[..., None]
        out: Tensor = self.head((p * both[:, 0] + (1 - p) * both[:, 1]).flatten(1))
        return out

    def losses(
        self, x: Tensor, concepts: Tensor, labels: Tensor, stage: str, tau: float = 1.0, samples: int = SAMPLES
    ) -> Losses:
        """As `SCBM.losses`; nothing is drawn but RandInt, so that `tau` and `samples` have no effect."""
        del tau, samples
        zero = torch.zeros(())
        with torch.set_grad_enabled(not stage.startswith("target")):
            both, logits = self.embeddings(x)
        own = zero if stage.startswith("target") else lose.plain_concept_loss(logits, concepts)
        if stage == "concepts":
            return Losses(zero, own, zero)
        p, truth = torch.sigmoid(logits), concepts.to(logits)
        shown = torch.ones_like(p, dtype=torch.bool) if stage == "target-on-truth" else torch.rand_like(p) < self.random
        return Losses(averaged_loss(self.mixed(both, torch.where(shown, truth, p))[:, None], labels), own, zero)

    @torch.no_grad()
    def read(self, x: Tensor) -> Reading:
        """x (B, ...) -> logits in float64; context (B, 2 K size): the embeddings."""
        both, logits = self.embeddings(x)
        return Reading(logits.double(), None, both.flatten(1))

    @torch.no_grad()
    def intervene(
        self,
        reading: Reading,
        answers: Answers,
        strategy: Strategy | None = None,
        *,
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> Outcome:
        """`protocol.ConceptModel`: an answer chooses its concept's embedding, nothing else moves, nothing is drawn, whatever the strategy."""
        del strategy, samples
        if reading.context is None:
            raise ValueError("A reading of a CEM holds its embeddings; this one has none.")
        every = branches(answers, seed)
        both = reading.context.reshape(-1, 2, self.concepts, self.size)[every.row]
        p = torch.where(every.known, every.value, torch.sigmoid(reading.mean[every.row]))
        classes = class_probabilities(self.mixed(both.to(self.head.dtype), p.to(self.head.dtype))).double()
        pictures = len(reading.mean)
        own = every.mean(classes, pictures)
        nothing = torch.zeros_like(reading.mean)
        return Outcome(
            every.mean(p, pictures), nothing, own, torch.zeros_like(own), reading.mean, nothing.clone(),
            torch.zeros_like(nothing, dtype=torch.bool), nothing.new_zeros(pictures), 0,
        )  # fmt: skip

    def weights(self) -> Tensor | None:
        """None: the head sees embeddings."""
        return None
