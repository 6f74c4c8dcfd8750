"""Autoregressive bottleneck (Havasi, Parbhoo & Doshi-Velez, NeurIPS 2022): each concept is predicted from the picture and the concepts before it.

Answers are put in while concepts are drawn one after the other; each draw then counts as much as it makes the answers probable, so that concepts
before an answered one move too.
"""

from __future__ import annotations

import math
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

UNITS = 50


class Autoregressive(nn.Module):
    """K concepts in their given order, each by an MLP (F + i -> 50 -> LeakyReLU -> 1), C classes by a head on drawn concepts.

    Trained in stages only: sequential or independent."""

    kind = "autoregressive"

    def __init__(self, encoder: nn.Module, concepts: int, classes: int, units: int = UNITS, hidden: int = 0):
        super().__init__()
        self.concepts, self.classes, self.units = concepts, classes, units
        self.encoder = encoder
        width = int(encoder.width)  # type: ignore[arg-type]
        self.from_features = nn.Parameter(torch.empty(concepts, units, width))
        self.from_concepts = nn.Parameter(torch.empty(concepts, units, concepts))
        self.inner = nn.Parameter(torch.empty(concepts, units))
        self.outer = nn.Parameter(torch.empty(concepts, units))
        self.last = nn.Parameter(torch.empty(concepts))
        with torch.no_grad():
            for i in range(concepts):  # as a linear layer of F + i inputs begins
                bound = 1 / math.sqrt(width + i)
                for part in (self.from_features, self.from_concepts, self.inner):
                    part[i].uniform_(-bound, bound)
            for part in (self.outer, self.last):
                part.uniform_(-1 / math.sqrt(units), 1 / math.sqrt(units))
        self.head = Head(concepts, classes, hidden)

    def begin(self, concepts: Tensor) -> None:
        """Nothing is taken from the labels."""

    def concept_parameters(self) -> Iterator[nn.Parameter]:
        yield from self.encoder.parameters()
        yield from (self.from_features, self.from_concepts, self.inner, self.outer, self.last)

    def logits(self, features: Tensor, concepts: Tensor) -> Tensor:
        """Features (B, F) and all concepts (B, K) -> logits (B, K), each from those before it: training, and likelihoods."""
        before = torch.tril(torch.ones(self.concepts, self.concepts), -1)[:, None]
        inner = torch.einsum("bf,kuf->bku", features, self.from_features) + self.inner
        inner = inner + torch.einsum("bj,kuj->bku", concepts.to(features), self.from_concepts * before)
        return (F.leaky_relu(inner) * self.outer).sum(2) + self.last

    def draw(self, features: Tensor, known: Tensor, value: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One concept after the other. features (R, F), known and value (R, K), u (M, K) uniform.

        Returns: concepts (R, M, K); log weights (R, M), how probable each draw makes the answers; probabilities (R, M, K) each concept had."""
        rows, draws = len(features), len(u)
        concepts = features.new_zeros(rows, draws, self.concepts)
        p = torch.empty_like(concepts)
        weight = features.new_zeros(rows, draws, dtype=torch.float64)
        start = torch.einsum("bf,kuf->kbu", features, self.from_features) + self.inner[:, None]
        for i in range(self.concepts):
            inner = start[i][:, None] + concepts[:, :, :i] @ self.from_concepts[i, :, :i].T
            logit = (F.leaky_relu(inner) * self.outer[i]).sum(2) + self.last[i]
            p[..., i] = torch.sigmoid(logit)
            said = known[:, i, None]
            concepts[..., i] = torch.where(said, value[:, i, None].to(p), (u[:, i] < p[..., i]).to(p))
            weight += torch.where(said, F.logsigmoid(logit * (2 * value[:, i, None] - 1)).double(), 0.0)
        return concepts, weight, p

    def losses(
        self, x: Tensor, concepts: Tensor, labels: Tensor, stage: str, tau: float = 1.0, samples: int = SAMPLES
    ) -> Losses:
        """As `SCBM.losses`. Errors: ValueError for the stage joint."""
        del tau
        zero = torch.zeros(())
        if stage == "joint":
            raise ValueError("An autoregressive bottleneck is trained in stages: sequential or independent.")
        if stage == "target-on-truth":
            return Losses(averaged_loss(self.head(concepts.to(self.head.dtype))[:, None], labels), zero, zero)
        if stage == "concepts":
            logits = self.logits(self.encoder(x), concepts)
            return Losses(zero, lose.plain_concept_loss(logits, concepts), zero)
        with torch.no_grad():
            nothing = torch.zeros(len(x), self.concepts, dtype=torch.bool)
            drawn = self.draw(self.encoder(x), nothing, nothing.double(), torch.rand(samples, self.concepts))[0]
        return Losses(averaged_loss(self.head(drawn), labels), zero, zero)

    @torch.no_grad()
    def read(self, x: Tensor) -> Reading:
        """x (B, ...) -> logits of the concepts' probabilities, mean over draws; context (B, F): the features."""
        features = self.encoder(x)
        nothing = torch.zeros(len(features), self.concepts, dtype=torch.bool)
        chance = torch.Generator().manual_seed(0)
        u = torch.rand(SAMPLES, self.concepts, generator=chance).to(features)
        p = torch.cat(
            [
                self.draw(f, n, n.double(), u)[2].mean(1)
                for f, n in zip(torch.split(features, 64), torch.split(nothing, 64), strict=True)
            ]
        )
        return Reading(torch.logit(p.double().clamp(1e-6, 1 - 1e-6)), None, features)

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
        """`protocol.ConceptModel`: draws are weighted by the probability that they give the answers, whatever the strategy. Errors of concepts and
        classes are those of weighted means (delta method)."""
        del strategy
        if reading.context is None:
            raise ValueError("A reading of an autoregressive bottleneck holds the features; this one has none.")
        every = branches(answers, seed)
        chance = torch.Generator().manual_seed(seed)
        u = torch.rand(samples, self.concepts, generator=chance).to(reading.context)
        pictures, found = len(reading.mean), []
        for some in torch.split(torch.arange(len(every.row)), 64):
            known, value = every.known[some], every.value[some]
            concepts, weight, p = self.draw(reading.context[every.row[some]], known, value, u)
            share = weight.softmax(1)[..., None]
            # A draw's weight depends on what it drew before the last answer, so that only behind it the probability may stand for the draw.
            later = known.flip(1).cummax(1).values.flip(1)
            likely = torch.where(later[:, None], concepts.double(), p.double())
            classes = class_probabilities(self.head(concepts.to(self.head.dtype))).double()
            row = []
            for each in (likely, classes):
                mean = (share * each).sum(1)
                row += [mean, ((share * (each - mean[:, None])) ** 2).sum(1).sqrt()]
            row[0] = torch.where(known, value, row[0])  # weights sum to 1 but for their rounding
            found.append(row)
        parts = [torch.cat([row[i] for row in found]) for i in range(4)]
        concepts, concepts_error, classes, classes_error = (every.mean(part, pictures) for part in parts)
        nothing = torch.zeros_like(reading.mean)
        return Outcome(
            concepts, concepts_error, classes, classes_error, torch.logit(concepts.clamp(1e-6, 1 - 1e-6)), nothing,
            torch.zeros_like(nothing, dtype=torch.bool), nothing.new_zeros(pictures), samples,
        )  # fmt: skip

    def weights(self) -> Tensor | None:
        return self.head.weights()
