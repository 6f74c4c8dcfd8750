"""From concepts to classes: one linear layer, or one hidden layer between. Draws of the concepts go through it as one batch."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Head(nn.Module):
    """(..., K) -> (..., C) logits; one logit where there are two classes.

    Args: hidden: units of a hidden layer with ReLU; 0: linear."""

    def __init__(self, inputs: int, classes: int, hidden: int = 0):
        super().__init__()
        outputs = self.outputs = 1 if classes == 2 else classes
        self.layers = (
            nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
            if hidden
            else nn.Sequential(nn.Linear(inputs, outputs))
        )

    def forward(self, concepts: Tensor) -> Tensor:
        out: Tensor = self.layers(concepts)
        return out

    def weights(self) -> Tensor | None:
        """(C, K) of a linear head, for two classes one row of it is zero; None with a hidden layer."""
        if len(self.layers) > 1:
            return None
        last = self.layers[0]
        assert isinstance(last, nn.Linear)
        weight = last.weight.detach()
        return torch.cat([torch.zeros_like(weight), weight]) if len(weight) == 1 else weight

    @property
    def dtype(self) -> torch.dtype:
        found: Tensor = next(self.parameters())
        return found.dtype


def class_probabilities(logits: Tensor) -> Tensor:
    """(..., C) logits -> (..., C); of one logit both classes, (..., 2)."""
    if logits.shape[-1] == 1:
        return torch.cat([torch.sigmoid(-logits), torch.sigmoid(logits)], -1)
    return logits.softmax(-1)


def averaged_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the class probabilities averaged over M draws, in log space: logits (B, M, C), labels (B,) -> scalar."""
    draws = logits.shape[1]
    if logits.shape[-1] == 1:
        log = F.logsigmoid(logits[..., 0] * (2 * labels[:, None] - 1))
    else:
        log = logits.log_softmax(-1).gather(2, labels[:, None, None].expand(-1, draws, 1))[..., 0]
    return (math.log(draws) - torch.logsumexp(log, 1)).mean()
