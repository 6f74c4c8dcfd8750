"""Conditioning the Gaussian of the logits on answered ones, in float64, always from the original one and on the whole set.

Rows of a batch may answer different concepts: the answered ones are gathered and padded to the longest set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fanlight_models.concepts.gaussian import factorised


@dataclass(frozen=True, eq=False)
class Answered:
    """Which concepts each of R rows answers: index (R, n), in rising order, and valid (R, n); padding is not valid and points at concept 0."""

    index: Tensor
    valid: Tensor

    def pick(self, values: Tensor) -> Tensor:
        """(R, K) -> (R, n), zero at padding."""
        return torch.where(self.valid, values.gather(1, self.index), values.new_zeros(()))

    def spread(self, values: Tensor, onto: Tensor) -> Tensor:
        """The (R, K) tensor `onto` with (R, n) written where it is answered."""
        out, rows = onto.clone(), torch.arange(len(onto), device=onto.device)[:, None].expand_as(self.index)
        out[rows[self.valid], self.index[self.valid]] = values[self.valid].to(onto.dtype)
        return out

    def block(self, covariance: Tensor) -> Tensor:
        """Sigma_SS (R, n, n) of (R, K, K); the identity at padding."""
        rows = torch.arange(len(self.index), device=covariance.device)[:, None, None]
        both = self.valid[:, :, None] & self.valid[:, None, :]
        eye = torch.eye(self.index.shape[1], dtype=covariance.dtype, device=covariance.device)
        return torch.where(both, covariance[rows, self.index[:, :, None], self.index[:, None, :]], eye)


def answered(known: Tensor) -> Answered:
    """known (R, K) bool -> the sets, padded."""
    count = known.sum(1)
    longest = max(int(count.max()), 1) if len(known) else 1  # one column at least, which may be all padding
    order = torch.sort((~known).to(torch.uint8), dim=1, stable=True).indices[:, :longest]
    valid = torch.arange(longest, device=known.device) < count[:, None]
    return Answered(torch.where(valid, order, torch.zeros_like(order)), valid)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """N(mean, covariance) of all logits after the answers; the answered ones have their value and no variance.

    mean (R, K), variance (R, K), gain (R, K, n): how far each logit moves per unit of each answered one. jitter (R,)."""

    mean: Tensor
    variance: Tensor
    gain: Tensor
    answers: Answered
    logits: Tensor
    jitter: Tensor
    _half: Tensor
    _prior: Tensor

    def covariance(self) -> Tensor:
        """(R, K, K)."""
        out = self._prior - self._half.mT @ self._half
        free = ~self.answers.spread(self.answers.valid, torch.zeros_like(self.mean, dtype=torch.bool))
        return out * (free[:, :, None] & free[:, None, :])

    def paths(self, logits: Tensor) -> Tensor:
        """Draws (R, M, K) of the original Gaussian -> draws of this one: each path is bent to the answers (Matheron's rule).

        Exact in distribution, needs no second factorisation, and where nothing correlates a path stays as it was to the last bit."""
        index = self.answers.index[:, None].expand(-1, logits.shape[1], -1)
        moved = self.open_paths(logits)
        target = torch.where(self.answers.valid[:, None], self.logits[:, None], moved.gather(2, index))
        return _put(moved, index, target.expand_as(index), self.answers.valid)

    def open_paths(self, logits: Tensor) -> Tensor:
        """`paths`, for those who read nothing of the answered logits: they are met only up to rounding."""
        index = self.answers.index[:, None].expand(-1, logits.shape[1], -1)
        miss = torch.where(
            self.answers.valid[:, None], self.logits[:, None] - logits.gather(2, index), logits.new_zeros(())
        )
        return logits + miss @ self.gain.mT


def _put(onto: Tensor, index: Tensor, values: Tensor, valid: Tensor) -> Tensor:
    """Writes values (R, M, n) at index; padding is written nowhere."""
    wide = torch.cat([onto, onto.new_zeros(*onto.shape[:2], 1)], 2)
    place = torch.where(valid[:, None], index, torch.full_like(index, onto.shape[2]))
    return wide.scatter_(2, place, values)[..., :-1]


def conditioned(mean: Tensor, covariance: Tensor, answers: Answered, logits: Tensor) -> Conditioned:
    """N(mean (R, K), covariance (R, K, K)) given that the answered logits are `logits` (R, n); all float64.

    mu + Sigma_S Sigma_SS^-1 (eta - mu_S) and Sigma - Sigma_S Sigma_SS^-1 Sigma_S^T."""
    block = factorised(answers.block(covariance))
    index = answers.index[:, None].expand(-1, mean.shape[1], -1)
    cross = torch.where(answers.valid[:, None], covariance.gather(2, index), covariance.new_zeros(()))  # (R, K, n)
    half = torch.linalg.solve_triangular(block.lower, cross.mT, upper=False)  # (R, n, K)
    gain = torch.linalg.solve_triangular(block.lower.mT, half, upper=True).mT
    miss = torch.where(answers.valid, logits - answers.pick(mean), logits.new_zeros(()))
    moved = mean + (gain @ miss[..., None])[..., 0]
    variance = (covariance.diagonal(dim1=-2, dim2=-1) - (half * half).sum(1)).clamp_min(0)
    return Conditioned(
        answers.spread(logits, moved),
        answers.spread(torch.zeros_like(logits), variance),
        gain,
        answers,
        logits,
        block.jitter,
        half,
        covariance,
    )
