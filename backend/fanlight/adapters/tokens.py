"""Where the cells of the picture are in what a layer puts out: channels first, channels last, or tokens.

Explainers know one form, a grid (B, D, h, w). `as_grid` brings a layer's output to it and says how to bring it back,
so that a hook can hand the rebuilt output on and the grid stays upstream of the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.utils.hooks import RemovableHandle

MOST_PREFIX = 16  # class, distillation and register tokens; published models have up to 9


class Grid(NamedTuple):
    """`prefix` tokens that are no place in the picture, then rows * columns that are, row by row."""

    prefix: int
    rows: int
    columns: int


def grid_of(tokens: int, size: tuple[int, int], prefix: int | None = None) -> Grid | None:
    """The grid that `tokens` tokens of a picture of `size` = (H, W) are: cells proportional to it, and as few prefix
    tokens as possible (exactly `prefix` where it is given). None where there is none of at least two cells."""
    found: list[Grid] = []
    for patch in range(1, min(size) + 1):
        for up in (0, patch - 1):  # patches that do not fit whole are cut off, or padded
            rows, columns = ((n + up) // patch for n in size)
            left = tokens - rows * columns
            known = left == prefix if prefix is not None else 0 <= left <= MOST_PREFIX
            if known and rows * columns > max(1, left):
                found.append(Grid(left, rows, columns))
    return min(found, default=None)


def as_grid(
    output: Tensor, size: tuple[int, int], prefix: int | None = None
) -> tuple[Tensor, Callable[[Tensor], Tensor]] | None:
    """A layer's output as a grid (B, D, h, w), and the way from a grid back to such an output.

    Args:
        output: (B, D, h, w), (B, h, w, D) or tokens (B, N, D); None is returned for anything else.
        size: (H, W) of the picture.
        prefix: number of prefix tokens where it is known.
    """
    import torch

    if output.ndim == 4:
        if _proportional(output.shape[2:], size) or not _proportional(output.shape[1:3], size):
            return output, lambda grid: grid
        return output.permute(0, 3, 1, 2), lambda grid: grid.permute(0, 2, 3, 1)  # (B, h, w, D)
    place = grid_of(output.shape[1], size, prefix) if output.ndim == 3 else None
    if place is None:
        return None
    before = output[:, : place.prefix]
    grid = output[:, place.prefix :].transpose(1, 2).reshape(len(output), -1, *place[1:])  # (B, D, h, w)
    return grid, lambda grid: torch.cat([before, grid.flatten(2).transpose(1, 2)], 1)


def read_grid(
    site: nn.Module, size: tuple[int, int], prefix: int | None, found: list[Tensor | None]
) -> RemovableHandle:
    """A hook that notes the grid of each run of `site` in `found` (None where it has none) and lets the run go on from
    that grid."""

    def hook(_module: nn.Module, _inputs: object, output: object) -> Tensor | None:
        import torch

        made = as_grid(output, size, prefix) if isinstance(output, torch.Tensor) else None
        found.append(made[0] if made else None)
        return made[1](made[0]) if made else None

    return site.register_forward_hook(hook)


def _proportional(cells: tuple[int, ...], size: tuple[int, int]) -> bool:
    """Whether (rows, columns) have the proportions of (H, W), but for less than one cell."""
    return abs(cells[0] * size[1] - cells[1] * size[0]) < max(size)
