"""What training minimises: target + alpha concepts + lambda precision; and how hard concepts let gradients through.

All from logits: a sigmoid in float32 saturates and kills gradients.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

STAGES = ("joint", "concepts", "target", "target-on-truth")
"""joint: all at once. concepts: encoder and concepts. target: the head, on concepts drawn from the model. target-on-truth: the head, on true
concepts."""
COLDEST = 0.5


class Losses(NamedTuple):
    """Scalars; zero where a stage has no such part."""

    target: Tensor
    concepts: Tensor
    precision: Tensor


def temperature(epoch: float, epochs: int) -> float:
    """Of relaxed concepts: 1 at the beginning, exponentially down to 0.5 at the end."""
    return max(math.exp(math.log(COLDEST) * epoch / epochs), COLDEST) if epochs else COLDEST


def concept_loss(logits: Tensor, concepts: Tensor) -> Tensor:
    """Negative log likelihood of concepts (B, K) under M draws of their logits (B, M, K), mean over pictures, nats summed over concepts.

    -logsumexp_m(-sum_j BCE) + log M. With log M it can be compared with that of a model without draws; for finite M it is too high on average."""
    each = -F.binary_cross_entropy_with_logits(logits, concepts[:, None].expand_as(logits).to(logits), reduction="none")
    return (math.log(logits.shape[1]) - torch.logsumexp(each.sum(2), 1)).mean()


def plain_concept_loss(logits: Tensor, concepts: Tensor) -> Tensor:
    """The same for independent logits (B, K)."""
    return F.binary_cross_entropy_with_logits(logits, concepts.to(logits), reduction="none").sum(1).mean()


def relaxed(logits: Tensor, tau: float) -> Tensor:
    """Draws of hard concepts (...), 0 or 1, with the gradient of relaxed ones (straight-through; Jang et al. and Maddison et al., ICLR 2017)."""
    u = torch.rand_like(logits).clamp(1e-7, 1 - 1e-7)
    soft = torch.sigmoid((logits + torch.logit(u)) / tau)
    return (soft > 0.5).to(soft) - soft.detach() + soft


def hard(logits: Tensor) -> Tensor:
    """Draws of hard concepts (...), without gradient."""
    return (torch.rand_like(logits) < torch.sigmoid(logits)).to(logits)
