"""Greedy matching with adjacency: which token of a picture each part of each prototype looks like (ProtoViT, section 3.2).

It is a walk: the best free pair of token and part is taken, then the next one among the neighbours of the token taken last, until every part
has a token. It is not an optimal assignment, and must not become one: published weights were trained for this.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

NEVER = float("-inf")
OUTSIDE = -4.0  # added to cosines outside the window: below all inside it, and above nothing that may never be chosen
ELEMENTS = 1 << 24  # similarities that are looked at in one piece: 64 MiB


class Match(NamedTuple):
    """Where the parts went.

    Args:
        token: (B, m, K) int64, row by row over the grid.
        order: (B, m, K) int64, the step at which the part was matched, from 0.
    """

    token: Tensor
    order: Tensor


def valid(parts: int, radius: int) -> bool:
    """Whether a walk always ends: at the last step at most K - 2 of the (r + 1)^2 - 1 neighbours that even a corner has are taken."""
    return parts >= 1 and radius >= 1 and parts <= (radius + 1) ** 2


def require(parts: int, radius: int, grid: tuple[int, int]) -> None:
    """Errors: ValueError, saying what is allowed."""
    if not valid(parts, radius):
        raise ValueError(
            f"{parts} parts within radius {radius} can end in a dead end; allowed are at most (radius + 1)^2 = {(radius + 1) ** 2} "
            "parts, and a radius of 1 or more."
        )
    if min(grid) <= radius:
        raise ValueError(f"A grid of {grid[0]} by {grid[1]} tokens is too small for a radius of {radius}.")


def neighbours(grid: tuple[int, int], radius: int) -> Tensor:
    """(N, N) bool: tokens at most `radius` rows and columns apart."""
    rows, columns = grid
    row, column = torch.arange(rows * columns) // columns, torch.arange(rows * columns) % columns
    return ((row[:, None] - row).abs() <= radius) & ((column[:, None] - column).abs() <= radius)


def walk(similarity: Tensor, near: Tensor, *, free: Tensor | None = None) -> Match:
    """The greedy walk over given similarities.

    Args:
        similarity: (..., K, N) cosines.
        near: (N, N) bool, from `neighbours`.
        free: (..., N) bool or None: tokens that may be used at all ("not this spot").
    Of equal similarities the lowest part wins, then the lowest token. No gradient flows. Where what is excluded leaves a walk no
    free neighbour it goes on anywhere: `valid` says that this cannot happen otherwise.
    Errors: ValueError where fewer tokens than parts are free.
    """
    with torch.no_grad():
        *lead, parts, tokens = similarity.shape
        left = similarity.detach().reshape(-1, parts, tokens).clone()
        if free is not None:
            if int(free.sum(-1).min()) < parts:
                raise ValueError(f"{parts} parts need {parts} tokens; too few are left of {tokens}.")
            left.masked_fill_(~free.expand(*lead, tokens).reshape(-1, 1, tokens), NEVER)
        every = torch.arange(len(left), device=left.device)
        token = torch.zeros(len(left), parts, dtype=torch.int64, device=left.device)
        order = torch.zeros_like(token)
        outside = OUTSIDE * (~near).to(left)  # (N, N)
        window = torch.zeros_like(outside[:1])
        for step in range(parts):
            best, where = (left + window[:, None]).max(2)  # (.., K): the best token of each part
            part = best.argmax(1)
            chosen = where[every, part]
            token[every, part], order[every, part] = chosen, step
            left[every, part] = NEVER
            left[every, :, chosen] = NEVER
            window = outside[chosen]
        return Match(token.reshape(*lead, parts), order.reshape(*lead, parts))


def match(z: Tensor, parts: Tensor, near: Tensor, *, free: Tensor | None = None) -> Match:
    """The walk of every prototype over every picture, a piece of the prototypes at a time so that the similarities never exist at once.

    Args:
        z: (B, N, D) unit tokens. parts: (m, K, D) unit vectors. free: (B, N) bool or None.
    """
    with torch.no_grad():
        batch, tokens, _ = z.shape
        count, size, _ = parts.shape
        piece = max(1, ELEMENTS // (batch * tokens * size))
        found = [
            walk(torch.einsum("bnd,mkd->bmkn", z, some), near, free=None if free is None else free[:, None])
            for some in torch.split(parts, piece)
        ]
        return Match(torch.cat([f.token for f in found], 1), torch.cat([f.order for f in found], 1))


def matched(z: Tensor, parts: Tensor, token: Tensor) -> Tensor:
    """(B, m, K) similarities of the matched pairs, with gradients to both sides; z, parts as in `match`, token from it.

    The same values and gradients as picking them out of all similarities, which would have to be kept for the way back.
    """
    return _Matched.apply(z, parts, token)  # type: ignore[no-any-return]


class _Matched(torch.autograd.Function):
    """One picture at a time, so that only (m K, D) numbers exist beside the tokens and the prototypes."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, z: Tensor, parts: Tensor, token: Tensor) -> Tensor:
        ctx.save_for_backward(z, parts, token)
        return torch.stack([(own[at] * parts).sum(-1) for own, at in zip(z, token, strict=True)])

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        z, parts, token = ctx.saved_tensors  # type: ignore[attr-defined]
        to_z, to_parts = torch.zeros_like(z), torch.zeros_like(parts)
        width = z.shape[-1]
        for own, at, g, into in zip(z, token, grad, to_z, strict=True):
            into.index_add_(0, at.reshape(-1), (g[..., None] * parts).reshape(-1, width))
            to_parts.addcmul_(g[..., None], own[at])
        return to_z, to_parts, None
