"""What class activation maps share: one pass to the grid of features and back to it, a weighting, the enlargement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


def run(
    model: ImageClassifier,
    items: Sequence[base.Item],
    ctx: base.Context,
    weigh: Callable[[Tensor, Tensor], Tensor],
    *,
    unit: str,
    signed: bool,
) -> base.Run:
    """One map for each item.

    Args:
        weigh: the activation A and the slope dS/dA, (B, D, h, w) each -> (B, 1, h, w), which is enlarged to the input.
    """
    import torch
    import torch.nn.functional as F

    found = []
    for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
        batch = items[start:stop]
        with torch.enable_grad():
            # the weights are frozen: without a gradient at the input nothing would reach the features
            x = evaluate.padded(torch.stack([i.x for i in batch]), rows).requires_grad_()
            logits, grid = model.features(x)  # (B, K), (B, D, h, w)
            value = torch.cat([i.target.value(logits[n : n + 1]) for n, i in enumerate(batch)])
            (grads,) = torch.autograd.grad(value.sum(), grid)
        cam = weigh(grid.detach(), grads)
        large = F.interpolate(cam, model.size, mode="bilinear", align_corners=False)[:, 0]
        found += [
            [maps.image_map(i, v, unit=unit, signed=signed, grid=list(cam.shape[2:]))]
            for i, v in zip(batch, large, strict=False)
        ]
        yield base.Step(stop / len(items))
    return found
