"""Exact expectations of sigmoids under a Gaussian, by the trapezoid rule on analytic integrands: the error falls exponentially in the step.

An integrand that is analytic in a strip of half-width d loses exp(-2 pi d / h). The logistic function has its poles at odd multiples of i pi.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

STEP = 0.5
NARROW = 0.8  # most deviation at which a step of 0.5 in the Gaussian's variable is fine enough; at twice that, half the step is
FINER = 3  # times that the step is halved at most: above, the logistic's variable is integrated over, whose step is always fine enough
DIGITS = 39.0  # exp(-39) = 1e-17
MOST = 3  # concepts whose joint distribution is integrated over


def expected_sigmoid(mean: Tensor, variance: Tensor) -> Tensor:
    """E[sigmoid(eta)], eta ~ N(mean, variance), elementwise in float64; variance 0 is allowed. Accurate to about 1e-15.

    For small deviations s it is the mean of sigmoid(m + s z) over a Gaussian z. For large ones it is the probability that a logistic u lies
    below eta, so the mean of Phi((m - u) / s) over u: that integrand stays smooth however large s is, but costs several times as much. What comes
    of an element does not depend on the others: each is summed by itself."""
    mean, variance = mean.double() + 0 * variance, variance.double() + 0 * mean
    deviation = variance.clamp_min(0).sqrt()
    out = torch.empty_like(mean)
    left = torch.ones_like(mean, dtype=torch.bool)
    for halved in range(FINER + 1):
        some = left & (deviation <= NARROW * 2**halved)
        left &= ~some
        step = STEP / 2**halved
        z = torch.arange(-8.5, 8.5 + step / 2, step, dtype=torch.float64, device=mean.device)
        weight = torch.exp(-z * z / 2) * (step / math.sqrt(2 * math.pi))
        out[some] = (torch.sigmoid(mean[some][:, None] + deviation[some][:, None] * z) * weight).sum(-1)
    u = torch.arange(-40.0, 40.1, STEP, dtype=torch.float64, device=mean.device)
    weight = torch.sigmoid(u) * torch.sigmoid(-u) * STEP
    out[left] = (torch.special.ndtr((mean[left][:, None] - u) / deviation[left][:, None]) * weight).sum(-1)
    return out


def patterns(concepts: int, device: torch.device | None = None) -> Tensor:
    """All (2^K, K) vectors of 0 and 1; row r has bit i of r, the first concept highest."""
    number = torch.arange(2**concepts, device=device)
    bits = torch.arange(concepts - 1, -1, -1, device=device)
    return ((number[:, None] >> bits) & 1).double()


def pattern_probabilities(mean: Tensor, lower: Tensor) -> Tensor:
    """P(c) of every pattern, (2^K,), for logits N(mean, L L^T), mean (K,), lower (K, K), K at most 3.

    Errors: ValueError for more concepts, whose grid would be too large."""
    concepts = len(mean)
    if concepts > MOST:
        raise ValueError(f"The joint distribution is integrated for up to {MOST} concepts, not {concepts}.")
    mean, lower = mean.double(), lower.double()
    every = patterns(concepts, mean.device)
    if concepts == 0:
        return torch.ones(1, dtype=torch.float64, device=mean.device)
    lines = []
    for column in lower.abs().amax(0).tolist():
        step = min(STEP, 2 * math.pi**2 / (DIGITS * max(column, 1e-9)))
        count = math.ceil(8.5 / step)
        z = torch.arange(-count, count + 1, dtype=torch.float64, device=mean.device) * step
        lines.append((z, torch.exp(-z * z / 2) * (step / math.sqrt(2 * math.pi))))
    z = torch.cartesian_prod(*[z for z, _ in lines]).reshape(-1, concepts)
    weight = torch.cartesian_prod(*[w for _, w in lines]).reshape(-1, concepts).prod(1)
    p = torch.sigmoid(mean + z @ lower.T)  # (nodes, K)
    total = torch.zeros(len(every), dtype=torch.float64, device=mean.device)
    for nodes, w in zip(torch.split(p, 1 << 16), torch.split(weight, 1 << 16), strict=True):
        each = torch.where(every[:, None] > 0, nodes, 1 - nodes).prod(-1)  # (patterns, nodes)
        total += each @ w
    return total
