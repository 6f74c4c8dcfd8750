"""Harmonic in-painting: hidden parts of a picture filled so that every hidden pixel is the mean of its four neighbours.

That is Laplace's equation with the shown pixels as boundary and borders that mirror. Solved from coarse to fine: each
level starts from the solution of the coarser one and is swept more often the coarser it is, so that colours travel far
at little cost. The number of sweeps is fixed, so that the same mask gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SWEEPS = 8  # at the finest level; three times as many at each coarser one
MOST = 90
INSIDE = 1e-3


def harmonic(x: Tensor, kept: Tensor) -> Tensor:
    """x (C, H, W) where `kept` (M, H, W) is True, its harmonic continuation elsewhere: (M, C, H, W).

    Where nothing is kept every pixel gets the mean colour of x.
    """
    import torch
    import torch.nn.functional as F

    shown = kept[:, None].to(x)
    # the solution hangs on the rim of what is shown, not on what is inside it: a cell takes its colour from the rim
    weight = shown * (F.max_pool2d(1 - shown, 3, 1, 1) + INSIDE)  # (M, 1, h, w)
    value = x * weight  # (M, C, h, w)
    levels = [(x * shown, shown > 0)]
    while max(weight.shape[2:]) > 1:
        value, weight = (F.avg_pool2d(t, 2, ceil_mode=True, count_include_pad=False) for t in (value, weight))
        known = weight > 0
        levels.append((torch.where(known, value / weight.clamp(min=1e-20), 0), known))
    found = x.mean((1, 2))[None, :, None, None].expand(len(kept), -1, 1, 1)
    for level, (fixed, known) in reversed(list(enumerate(levels))):
        rough = F.interpolate(found, scale_factor=2.0, mode="bilinear", align_corners=False)
        rough = rough[:, :, : fixed.shape[2], : fixed.shape[3]]  # the last cell of an odd line covered one pixel
        found = _swept(torch.where(known, fixed, rough), fixed, known, min(SWEEPS * 3**level, MOST))
    return found


def _swept(x: Tensor, fixed: Tensor, known: Tensor, times: int) -> Tensor:
    """x (M, C, h, w) after `times` sweeps, each of which replaces unknown pixels by the mean of their neighbours and goes
    further the same way (Chebyshev's acceleration of Jacobi's iteration); `fixed` is 0 where a pixel is unknown."""
    import torch
    import torch.nn.functional as F

    share = (~known).to(x) / 4  # (M, 1, h, w)
    this, last = (F.pad(x, (1, 1, 1, 1), mode="replicate") for _ in range(2))
    mean = torch.empty_like(fixed)
    reach = 1 - 2.5 / max(times, 2) ** 2  # modes that decay slower than this in one sweep decay tenfold in all of them
    step = 1.0
    for n in range(times):
        torch.add(this[:, :, 1:-1, :-2], this[:, :, 1:-1, 2:], out=mean)
        mean += this[:, :, :-2, 1:-1]
        mean += this[:, :, 2:, 1:-1]
        torch.addcmul(fixed, mean, share, out=mean)
        inner = last[:, :, 1:-1, 1:-1]
        torch.lerp(inner, mean, step, out=inner)
        last[:, :, 0], last[:, :, -1] = last[:, :, 1], last[:, :, -2]
        last[..., 0], last[..., -1] = last[..., 1], last[..., -2]
        this, last = last, this
        step = 1 / (1 - reach**2 / 2) if n == 0 else 1 / (1 - reach**2 * step / 4)
    return torch.where(known, fixed, this[:, :, 1:-1, 1:-1])
