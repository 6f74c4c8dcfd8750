"""What the explainers of pictures share: baselines, square regions, and the making of an `image-map`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fanlight.artifact import Artifact
from fanlight.explainers.base import Item

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

Baseline = Literal["grey", "black", "white", "mean", "blur"]
BASELINE = (
    "What takes the place of a hidden part: mid grey, black, white, the picture's mean colour, or the picture blurred."
)
COLOURS: dict[str, float] = {"grey": 127.5, "black": 0.0, "white": 255.0}
BLUR = 1 / 20  # standard deviation of the blur, as a share of the shorter side: about 11 px of 224


def baseline(model: ImageClassifier, item: Item, name: Baseline) -> Tensor:
    """The reference picture in model space, (3, H, W)."""
    if name in COLOURS:
        return model.colour((COLOURS[name],) * 3).expand_as(item.x)
    if name == "mean":
        return item.x.mean((1, 2), keepdim=True).expand_as(item.x)
    return blurred(item.x, BLUR * min(item.x.shape[1:]))


def blurred(x: Tensor, sigma: float) -> Tensor:
    """(C, H, W) after a Gaussian of standard deviation `sigma` pixels, cut at 3 sigma, mirrored at the border."""
    import torch
    import torch.nn.functional as F

    radius = min(max(1, round(3 * sigma)), min(x.shape[1:]) - 1)
    at = torch.arange(-radius, radius + 1, dtype=torch.float64)
    bell = torch.exp(-0.5 * (at / sigma) ** 2)
    weights = (bell / bell.sum()).to(x)
    wide = F.pad(x[:, None], (radius,) * 4, mode="reflect")  # (C, 1, H + 2r, W + 2r)
    return F.conv2d(F.conv2d(wide, weights.view(1, 1, 1, -1)), weights.view(1, 1, -1, 1))[:, 0]


def squares(size: tuple[int, int], side: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """(H, W) int32: the square of `side` pixels that each pixel is in, row by row from 0; those at the right and
    bottom may be cut."""
    rows, columns = (np.arange(n, dtype=np.int32) // side for n in size)
    return np.asarray(rows[:, None] * (columns[-1] + 1) + columns[None, :], dtype=np.int32)


def image_map(item: Item, value: Tensor, *, unit: str, signed: bool, **meta: Any) -> Artifact:
    """An `image-map` named "map" from (H, W) values."""
    about = {"unit": unit, "signed": signed, "box": list(item.box), "target": item.target.json(), **meta}
    return Artifact("map", "image-map", {"value": value.detach().float().cpu().numpy()}, about)
