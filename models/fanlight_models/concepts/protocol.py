"""What every concept bottleneck offers, whatever is inside: read a picture once, then answer questions about it as often as one likes.

`read` runs the network. `intervene` needs no picture and no network in front of the concepts: only the reading and the head, so that it can be
asked live, from stored arrays, by any process. docs/concepts.md describes this protocol for whoever builds on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.strategies import Strategy

SAMPLES = 100


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model believes of B pictures before anybody says anything; enough to compute every intervention.

    mean (B, K): logits of the concepts, float64. lower (B, K, K): L of their covariance, float64; None where the model states no covariance.
    context (B, D): what else the model needs (features, embeddings), float32; None for most."""

    mean: Tensor
    lower: Tensor | None = None
    context: Tensor | None = None

    def covariance(self) -> Tensor:
        """(B, K, K); zero where there is none."""
        if self.lower is None:
            return self.mean.new_zeros(*self.mean.shape, self.mean.shape[1])
        return self.lower @ self.lower.mT

    def rows(self, which: Tensor | slice) -> Reading:
        """Some of the pictures."""
        return Reading(
            self.mean[which],
            None if self.lower is None else self.lower[which],
            None if self.context is None else self.context[which],
        )

    def arrays(self) -> dict[str, Tensor]:
        """For a file; `of` is its inverse."""
        every = {"mean": self.mean, "lower": self.lower, "context": self.context}
        return {name: value.contiguous() for name, value in every.items() if value is not None}

    @classmethod
    def of(cls, arrays: Mapping[str, Tensor]) -> Reading:
        """Errors: ValueError where shapes do not fit or a number is not finite."""
        mean, lower, context = arrays["mean"], arrays.get("lower"), arrays.get("context")
        if mean.dim() != 2 or (lower is not None and lower.shape != (*mean.shape, mean.shape[1])):
            raise ValueError("The arrays of a reading do not fit each other.")
        if not all(bool(torch.isfinite(a).all()) for a in (mean, lower, context) if a is not None):
            raise ValueError("The arrays of a reading hold numbers that are not finite.")
        return cls(mean.double(), None if lower is None else lower.double(), context)

    @classmethod
    def cat(cls, parts: list[Reading]) -> Reading:
        """Several readings of one model as one."""
        lower = [p.lower for p in parts if p.lower is not None]
        context = [p.context for p in parts if p.context is not None]
        return cls(
            torch.cat([p.mean for p in parts]),
            torch.cat(lower) if lower else None,
            torch.cat(context) if context else None,
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model believes after answers.

    concepts (B, K): P(concept); concepts_error (B, K): standard error of the draws, 0 where computed exactly.
    classes (B, C): P(class), two classes for a binary target; classes_error (B, C).
    mean (B, K), deviation (B, K): of the logits of the concepts, mean over combinations where answers are soft; the answered ones have deviation 0.
    against (B, K): answers whose logit pulls correlated concepts the other way (`strategies.Logits`).
    jitter (B,): what was added to a covariance that could not be factorised. samples: draws behind the classes; 0: all exact."""

    concepts: Tensor
    concepts_error: Tensor
    classes: Tensor
    classes_error: Tensor
    mean: Tensor
    deviation: Tensor
    against: Tensor
    jitter: Tensor
    samples: int

    @classmethod
    def cat(cls, parts: list[Outcome]) -> Outcome:
        names = ("concepts", "concepts_error", "classes", "classes_error", "mean", "deviation", "against", "jitter")
        every = {name: torch.cat([getattr(p, name) for p in parts]) for name in names}
        return cls(samples=max(p.samples for p in parts), **every)


class ConceptModel(Protocol):
    """K concepts, C classes. In eval mode with frozen parameters; the calls leave it so, and run without gradient."""

    kind: str
    concepts: int
    classes: int

    def read(self, x: Tensor) -> Reading:
        """x (B, ...) in the encoder's space -> what is believed before any answer."""
        ...

    def intervene(
        self,
        reading: Reading,
        answers: Answers,
        strategy: Strategy | None = None,
        *,
        samples: int = SAMPLES,
        seed: int = 0,
    ) -> Outcome:
        """What is believed after answers; None: the model's own default strategy. The same seed gives the same draws for every picture and every
        set of answers, so that differences are of the answers and not of chance; a picture alone gets what it gets in a batch."""
        ...

    def weights(self) -> Tensor | None:
        """(C, K) weights of a linear head, None where the head is not linear in the concepts."""
        ...
