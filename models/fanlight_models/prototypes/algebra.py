"""What follows from one forward pass without another: points, muting, gating, "why not B?", removal of a prototype with repair of the last layer.

All of it is linear in the activations, which are linear in the cosines of the parts: exact, on the CPU, at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fanlight_models.prototypes.head import TINY, activation


def points(similarity: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
    """(C, m, K): what every part of every prototype adds to every logit; their sum over m and K is the logit, exactly.

    Args: similarity: (m, K); gate: (m, K); weight: (C, m).
    """
    shares = gate.shape[-1] * gate * similarity / (gate.sum(-1, keepdim=True) + TINY)
    return weight[:, :, None] * shares


def edited(
    similarity: Tensor, gate: Tensor, weight: Tensor, *, mute: list[int], shut: list[tuple[int, int]]
) -> tuple[Tensor, Tensor]:
    """Activations (m,) and logits (C,) with prototypes muted and parts (prototype, part) left out, the match as it was."""
    gate = gate.clone()
    for j, k in shut:
        gate[j, k] = 0
    a = activation(similarity, gate)
    a[mute] = 0
    return a, weight @ a


class Contrast(NamedTuple):
    """Why A and not B.

    Args:
        margin: logit of A less logit of B.
        difference: (m,) what each prototype adds to the margin.
        flip: the smallest set of prototypes without which B is ahead, the largest first; None where muting cannot do it.
        lacking: (m,) K - a of the prototypes of B, 0 of all others: how far each is from a perfect match.
    """

    margin: float
    difference: Tensor
    flip: list[int] | None
    lacking: Tensor


def contrast(a: Tensor, weight: Tensor, own: Tensor, parts: int, first: int, second: int) -> Contrast:
    """Args: a: (m,); weight: (C, m); own: (m,); first, second: the classes A and B.

    The margin is a sum over prototypes and muting one takes its term out, so that the shortest prefix of the terms in
    descending order that adds up to more than the margin is the smallest set that flips the answer.
    """
    difference = (weight[first] - weight[second]) * a
    margin = float(difference.sum())
    lacking = torch.where(own == second, parts - a, 0)
    if margin < 0:
        return Contrast(margin, difference, [], lacking)
    ranked, order = difference.sort(descending=True)
    enough = (ranked.clamp(min=0).cumsum(0) > margin).nonzero()
    flip = None if len(enough) == 0 else [int(j) for j in order[: int(enough[0, 0]) + 1]]
    return Contrast(margin, difference, flip, lacking)


class Removal(NamedTuple):
    """What taking a prototype out of a last layer costs. Args: weight: (m,) repaired row; loss: rise of the loss, second order."""

    weight: Tensor
    loss: float


def remove(weight: Tensor, inverse: Tensor, j: int) -> Removal:
    """The optimal brain surgeon's step (Hassibi & Stork, NIPS 1992): w' = w - H^-1 e_j w_j / (H^-1)_jj, loss w_j^2 / (2 (H^-1)_jj).

    Args: weight: (m,); inverse: (m, m) inverse of the Hessian of the loss in these weights.
    """
    at = inverse[j, j]
    repaired = weight - inverse[:, j] * weight[j] / at
    repaired[j] = 0
    return Removal(repaired, float(weight[j] ** 2 / (2 * at)))
