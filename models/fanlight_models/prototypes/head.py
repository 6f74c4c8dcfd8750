"""The prototype head: what a prototype's parts found becomes its activation, and activations become logits (ProtoViT, sections 3.2 and 3.4)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fanlight_models.prototypes import matching

OPEN = 0.1  # raw gate at the start: sigmoid(100 * 0.1) = 0.99995
ROUNDED = 200.0  # raw gate after projection: sigmoid of 20,000 is exactly 1 in float32, of its negative exactly 0
TINY = 1e-10


class Found(NamedTuple):
    """What the head saw in a batch.

    Args:
        similarity: (B, m, K) cosines of the matched pairs, -1..1.
        token: (B, m, K) int64. order: (B, m, K) int64.
        activation: (B, m), -K..K.
        logits: (B, C).
    """

    similarity: Tensor
    token: Tensor
    order: Tensor
    activation: Tensor
    logits: Tensor


def gates(raw: Tensor, temperature: float) -> Tensor:
    """Slots in 0..1: sigmoid(temperature * raw), equation 9."""
    return torch.sigmoid(temperature * raw)


def activation(similarity: Tensor, gate: Tensor) -> Tensor:
    """K / sum(g) * sum(g * cos) over the last dimension: (..., m, K), (m, K) -> (..., m); 0 for a prototype without parts.

    It does not depend on the size of the gates, only on their proportions: to leave out a part that fits badly raises it.
    """
    return gate.shape[-1] / (gate.sum(-1) + TINY) * (gate * similarity).sum(-1)


class Head(nn.Module):
    """m = C * per_class prototypes of K parts each; logits without a bias. Weights bear the names of the published files.

    Args:
        width: D. classes: C. grid: rows and columns of tokens. radius: of the neighbourhood, in tokens. temperature: of the gates.
    Errors: ValueError where a walk could end in a dead end.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        grid: tuple[int, int],
        *,
        per_class: int = 10,
        parts: int = 4,
        radius: int = 1,
        temperature: float = 100.0,
    ):
        super().__init__()
        matching.require(parts, radius, grid)
        self.grid, self.radius, self.temperature, self.per_class = grid, radius, temperature, per_class
        count = classes * per_class
        self.prototype_vectors = nn.Parameter(torch.rand(count, width, parts))
        self.patch_select = nn.Parameter(torch.full((1, count, parts), OPEN))
        self.last_layer = nn.Linear(count, classes, bias=False)
        self.register_buffer("near", matching.neighbours(grid, radius), persistent=False)
        self.register_buffer("own", torch.arange(count) // per_class, persistent=False)
        self.near: Tensor
        self.own: Tensor
        with torch.no_grad():
            mine = self.own == torch.arange(classes)[:, None]
            self.last_layer.weight.copy_(torch.where(mine, 1.0, -0.5))

    @property
    def gate(self) -> Tensor:
        """(m, K)."""
        return gates(self.patch_select[0], self.temperature)

    def parts(self) -> Tensor:
        """(m, K, D) unit vectors; a part that was left out at projection stays 0."""
        return F.normalize(self.prototype_vectors.transpose(1, 2), dim=-1)

    def forward(self, z: Tensor, *, free: Tensor | None = None) -> Found:
        """Args: z: (B, N, D) tokens; free: (B, N) bool, tokens that may be used. Parts that are left out still take part in the
        walk, as in the authors' code: they use up a token and move the window."""
        unit, parts = F.normalize(z, dim=-1), self.parts()
        where = matching.match(unit, parts, self.near, free=free)
        similarity = matching.matched(unit, parts, where.token)
        a = activation(similarity, self.gate)
        return Found(similarity, where.token, where.order, a, self.last_layer(a))

    def round_gates(self) -> list[int]:
        """Opens or shuts every gate for good, and keeps the widest of a prototype that would lose all: those prototypes are returned.
        (The authors' code lets them become empty [OWN].)"""
        with torch.no_grad():
            raw = self.patch_select[0]
            open_ = self.gate.round() == 1
            empty = ~open_.any(1)
            open_[empty, raw[empty].argmax(1)] = True
            raw.copy_(torch.where(open_, ROUNDED, -ROUNDED))
            return [int(j) for j in empty.nonzero()[:, 0]]
