"""Numbers behind an explanation by concepts: what each concept does to each class, directly and through the concepts it moves; cases with similar
concepts; how concepts hang together given the picture.

For a linear head the expected logit of class y is b_y + sum_k W_yk p_k, exactly, with p_k the concept probabilities. So shares of it are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.drawing import noise
from fanlight_models.concepts.gaussian import draws
from fanlight_models.concepts.protocol import SAMPLES, ConceptModel, Outcome, Reading
from fanlight_models.concepts.strategies import Strategy


class NotLinear(ValueError):
    """The head is not linear in the concepts, so that its logits do not fall into shares."""


def _weights(model: ConceptModel) -> Tensor:
    weights = model.weights()
    if weights is None:
        raise NotLinear(
            f"The head of this model ({model.kind}) is not linear in the concepts; contributions of single concepts are not defined."
        )
    return weights.double()


def contributions(model: ConceptModel, outcome: Outcome, base: Tensor) -> Tensor:
    """(B, C, K): W_yk (p_k - base_k), the share of concept k in the expected logit of class y compared with probabilities `base` (K,), for
    example how frequent each concept is in training. Their sum over k is the difference of the two expected logits, exactly.

    Errors: NotLinear."""
    return _weights(model)[None] * (outcome.concepts - base.double())[:, None]


@dataclass(frozen=True, eq=False)
class Effects:
    """What answering concept k would do, for one picture; of each pair the first is for yes, the second for no.

    concepts (2, K, K): change of probability j after k was answered. logits (2, K, C): change of the expected logits, = concepts @ W^T.
    direct (2, K, C): the part of it that is concept k's own weight. classes (2, K, C): change of the class probabilities."""

    concepts: Tensor
    logits: Tensor
    direct: Tensor
    classes: Tensor

    @property
    def through(self) -> Tensor:
        """(2, K, C): the part that comes through concepts that move with k; zero without covariance."""
        return self.logits - self.direct


def effects(
    model: ConceptModel,
    reading: Reading,
    answers: Answers,
    strategy: Strategy | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Effects:
    """The total effect of each possible answer of one picture (reading and answers of B = 1), split into direct and through correlation.

    Of a concept that is answered already it is the effect of the other answer in its place. Errors: NotLinear; ValueError for more pictures."""
    if len(reading.mean) != 1:
        raise ValueError(f"Effects are those of one picture, not {len(reading.mean)}.")
    weights, count = _weights(model), reading.mean.shape[1]
    rows = torch.zeros(2 * count, dtype=torch.int64)
    said = torch.cat([torch.ones(count), torch.zeros(count)]).double()
    asked = Answers(answers.value[rows], answers.known[rows], answers.asked[rows]).with_(
        torch.arange(count).repeat(2), said
    )
    now = model.intervene(reading, answers, strategy, samples=samples, seed=seed)
    after = model.intervene(reading.rows(rows), asked, strategy, samples=samples, seed=seed)
    moved = (after.concepts - now.concepts).reshape(2, count, count)
    own = moved.diagonal(dim1=1, dim2=2)  # (2, K)
    return Effects(
        moved,
        moved @ weights.T,
        own[:, :, None] * weights.T,
        (after.classes - now.classes).reshape(2, count, -1),
    )


def distance(p: Tensor, cases: Tensor) -> Tensor:
    """(B, n): Hellinger distance of independent concepts p (B, K) to those of cases (n, K), root of the mean over concepts; 0 alike, 1 opposite.

    A difference between 0.01 and 0.05 counts more than one between 0.48 and 0.52, as it should between probabilities."""
    return _apart(roots(p), roots(cases))


def roots(p: Tensor) -> Tensor:
    """(n, K) probabilities -> (n, 2K) float64: the roots of p and of 1 - p, all that distances need of them."""
    p = p.double().clamp(0, 1)
    return torch.cat([p.sqrt(), (1 - p).sqrt()], 1)


def _apart(a: Tensor, b: Tensor) -> Tensor:
    return (1 - (a @ b.T) / (a.shape[1] / 2)).clamp_min(0).sqrt()


def similar(p: Tensor, cases: Tensor, count: int = 6) -> tuple[Tensor, Tensor]:
    """The cases nearest to concepts p (B, K): numbers (B, count) and distances (B, count), nearest first. cases (n, 2K): their `roots`."""
    apart = _apart(roots(p), cases)
    found = torch.sort(apart, dim=1, stable=True)
    return found.indices[:, :count], found.values[:, :count]


def logit_correlation(reading: Reading) -> Tensor:
    """(B, K, K): correlation of the concepts' logits given the picture; the identity where the model states no covariance."""
    covariance = reading.covariance()
    deviation = covariance.diagonal(dim1=1, dim2=2).sqrt()
    scale = deviation[:, :, None] * deviation[:, None, :]
    out = torch.where(scale > 0, covariance / scale.clamp_min(1e-300), 0.0)
    out.diagonal(dim1=1, dim2=2).fill_(1.0)
    return out


def concept_covariance(reading: Reading, samples: int = 1000, seed: int = 0) -> Tensor:
    """(B, K, K): covariance of the concepts themselves, as 0 and 1, given the picture. Off the diagonal the covariance of sigmoid(eta) over draws
    (standard error about 0.25 / sqrt(samples)), on it p (1 - p)."""
    z, _ = noise(samples, reading.mean.shape[1], seed)
    p = torch.sigmoid(draws(reading.mean, reading.lower, z))
    centred = p - p.mean(1, keepdim=True)
    out = centred.mT @ centred / samples
    mean = p.mean(1)
    out.diagonal(dim1=1, dim2=2).copy_(mean * (1 - mean))
    return out


def concept_correlation(reading: Reading, samples: int = 1000, seed: int = 0) -> Tensor:
    """(B, K, K): `concept_covariance` as correlation."""
    covariance = concept_covariance(reading, samples, seed)
    deviation = covariance.diagonal(dim1=1, dim2=2).clamp_min(1e-12).sqrt()
    return covariance / (deviation[:, :, None] * deviation[:, None, :])
