"""Prototypes whose parts keep their places to each other: the comparison for parts that may move."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.prototypes import matching
from fanlight_models.prototypes.head import Found, Head, activation


class RigidHead(Head):
    """K = k * k parts that lie in a square of k by k tokens: the square is laid where the sum of the cosines of its parts is highest. That is
    ProtoPNet's prototype of k by k (Chen et al. 2019, section 2.1), with the cosine, losses and projection of the other head, so that
    nothing but the matching differs [OWN]. Square root of `parts` as a whole number; the radius is not used.

    Errors: ValueError where the parts make no square.
    """

    def __init__(self, *args: object, parts: int = 4, **options: object):
        side = math.isqrt(parts)
        if side * side != parts:
            raise ValueError(f"{parts} parts make no square; 1, 4 or 9 do.")
        super().__init__(*args, parts=parts, **options)  # type: ignore[arg-type]
        self.side = side

    def forward(self, z: Tensor, *, free: Tensor | None = None) -> Found:
        """Args as of `Head`. Of equal squares the first row by row."""
        unit, parts = F.normalize(z, dim=-1), self.parts()
        token = self._laid(unit, parts, free)
        similarity = matching.matched(unit, parts, token)
        a = activation(similarity, self.gate)
        order = torch.arange(parts.shape[1], device=z.device).expand_as(token)
        return Found(similarity, token, order, a, self.last_layer(a))

    def _laid(self, unit: Tensor, parts: Tensor, free: Tensor | None) -> Tensor:
        """(B, m, K) int64: the tokens under the best square; no gradient flows."""
        rows, columns = self.grid
        high, wide = rows - self.side + 1, columns - self.side + 1
        with torch.no_grad():
            cosine = torch.einsum("bnd,mkd->bmkn", unit, parts)
            if free is not None:
                cosine = cosine.masked_fill(~free[:, None, None], float("-inf"))
            cosine = cosine.reshape(*cosine.shape[:3], rows, columns)
            shifts = [(k // self.side, k % self.side) for k in range(parts.shape[1])]
            gate = self.gate[None, :, :, None, None]
            fits = sum(
                (cosine[:, :, k : k + 1, r : r + high, c : c + wide] * gate[:, :, k : k + 1])[:, :, 0]
                for k, (r, c) in enumerate(shifts)
            )
            assert isinstance(fits, Tensor)
            first = fits.flatten(2).argmax(2)  # (B, m)
            corner = first // wide * columns + first % wide
            offset = torch.tensor([r * columns + c for r, c in shifts], device=corner.device)
            return corner[..., None] + offset
