"""Concept logits given a picture: eta ~ N(mu, Sigma), Sigma = L L^T. The parametrisations of L, sampling, and what the precision costs.

Vandenhirtz, Laguna, Marcinkevics & Vogt, Stochastic Concept Bottleneck Models (NeurIPS 2024). The fill of L, its scaling at initialisation and the
start of the global covariance follow the public code of the paper (docs/concepts.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FLOOR = 1e-6  # least diagonal entry of L
SURE = math.log(0.95 / 0.05)  # logit of the 95th percentile that stands for "yes": 2.944439
JITTER, MOST_JITTER = 1e-10, 1e-2  # of the mean diagonal


class NotPositiveDefinite(ValueError):
    """A matrix that is no covariance, however much is added to its diagonal within reason."""


class Factor(NamedTuple):
    """lower: (..., K, K); jitter: (...,), what was added to the diagonal of each matrix, 0 for most."""

    lower: Tensor
    jitter: Tensor


def entries(concepts: int) -> int:
    """Numbers in a lower triangle."""
    return concepts * (concepts + 1) // 2


def filled(values: Tensor, concepts: int) -> Tensor:
    """(..., K(K+1)/2) in row-major order -> L (..., K, K) with softplus + 1e-6 on the diagonal and the others as they are."""
    rows, columns = torch.tril_indices(concepts, concepts, device=values.device)
    out = values.new_zeros(*values.shape[:-1], concepts, concepts)
    out[..., rows, columns] = torch.where(rows == columns, F.softplus(values) + FLOOR, values)
    return out


def unfilled(lower: Tensor) -> Tensor:
    """The numbers that `filled` makes this L from: (..., K, K) -> (..., K(K+1)/2)."""
    concepts = lower.shape[-1]
    rows, columns = torch.tril_indices(concepts, concepts, device=lower.device)
    values = lower[..., rows, columns]
    diagonal = (values - FLOOR).clamp_min(FLOOR)
    return torch.where(rows == columns, diagonal + torch.log(-torch.expm1(-diagonal)), values)


def factorised(matrix: Tensor) -> Factor:
    """Cholesky factors (..., K, K). A matrix that has none gets a jitter of its own, doubled until it has one; the others stay as they are.

    Errors: NotPositiveDefinite where 1 % of the mean diagonal is not enough, or a number is not finite."""
    shape, size = matrix.shape[:-2], matrix.shape[-1]
    if not matrix.numel():
        return Factor(matrix.clone(), matrix.new_zeros(shape))
    flat = matrix.reshape(-1, size, size)
    lower, info = torch.linalg.cholesky_ex(flat)
    jitter = flat.new_zeros(len(flat))
    failed = (info != 0) | ~torch.isfinite(lower).all(-1).all(-1)
    if failed.any():
        lower = lower.clone()
        scale = flat.diagonal(dim1=-2, dim2=-1).abs().mean(-1)
        amount = JITTER
        while failed.any():
            if amount > MOST_JITTER or not torch.isfinite(scale).all():
                raise NotPositiveDefinite(
                    f"{int(failed.sum())} of {len(flat)} covariance matrices are not positive definite, "
                    f"also with {MOST_JITTER:g} of the mean diagonal added."
                )
            rows = failed.nonzero()[:, 0]
            added = amount * scale[rows]
            again, info = torch.linalg.cholesky_ex(flat[rows] + torch.diag_embed(added[:, None].expand(-1, size)))
            good = (info == 0) & torch.isfinite(again).all(-1).all(-1)
            lower[rows[good]], jitter[rows[good]] = again[good], added[good]
            failed[rows[good]] = False
            amount *= 2
    return Factor(lower.reshape(*shape, size, size), jitter.reshape(shape))


def of_labels(concepts: Tensor) -> Factor:
    """L (K, K) of the covariance of labels (n, K) in {0, 1} as logits: yes is +2.944439, no -2.944439. float64.

    Sigma_ij = 34.67886 cov(c_i, c_j), so that a balanced concept has variance 8.67."""
    logits = (2 * concepts.double() - 1) * SURE
    return factorised(torch.cov(logits.T).reshape(concepts.shape[1], concepts.shape[1]))


class Amortized(nn.Module):
    """L as a linear function of the features, so that each picture has its own covariance: (B, F) -> (B, K, K)."""

    def __init__(self, features: int, concepts: int):
        super().__init__()
        self.concepts = concepts
        self.linear = nn.Linear(features, entries(concepts))
        with torch.no_grad():
            self.linear.weight.mul_(0.01)

    def forward(self, features: Tensor) -> Tensor:
        return filled(self.linear(features), self.concepts)

    def begin(self, labels: Tensor) -> None:
        """Nothing: it begins near softplus(0) on the diagonal."""


class Global(nn.Module):
    """One free L for all pictures, which begins as that of the training labels: (B, F) -> (B, K, K)."""

    def __init__(self, concepts: int):
        super().__init__()
        self.concepts = concepts
        self.values = nn.Parameter(torch.zeros(entries(concepts)))

    def forward(self, features: Tensor) -> Tensor:
        return filled(self.values, self.concepts).expand(len(features), -1, -1)

    def begin(self, labels: Tensor) -> None:
        """Starts from the covariance of labels (n, K)."""
        with torch.no_grad():
            self.values.copy_(unfilled(of_labels(labels).lower))


class Empirical(nn.Module):
    """The L of the training labels, for all pictures, not trained: (B, F) -> (B, K, K)."""

    lower: Tensor

    def __init__(self, concepts: int):
        super().__init__()
        self.register_buffer("lower", torch.eye(concepts))

    def forward(self, features: Tensor) -> Tensor:
        return self.lower.expand(len(features), -1, -1)

    def begin(self, labels: Tensor) -> None:
        """Takes the covariance of labels (n, K)."""
        self.lower.copy_(of_labels(labels).lower)


def draws(mean: Tensor, lower: Tensor | None, noise: Tensor) -> Tensor:
    """Logits (B, M, K) = mu + L z. mean (B, K), lower (B, K, K) or None for no spread, noise (M, K) or (B, M, K)."""
    if lower is None:
        return mean[:, None].expand(-1, noise.shape[-2], -1)
    return mean[:, None] + noise @ lower.mT


def precision_penalty(lower: Tensor) -> Tensor:
    """Mean size of the precision's entries off the diagonal, mean over pictures: (B, K, K) -> scalar; 0 for one concept."""
    size = lower.shape[-1]
    if size == 1:
        return lower.sum() * 0
    inverse = torch.linalg.solve_triangular(lower, torch.eye(size, dtype=lower.dtype, device=lower.device), upper=False)
    precision = inverse.mT @ inverse
    apart = precision.abs().sum((-2, -1)) - precision.diagonal(dim1=-2, dim2=-1).sum(-1)
    penalty: Tensor = (apart / (size * (size - 1))).mean()
    return penalty
