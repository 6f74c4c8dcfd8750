"""What the explainers of pictures share: baselines, square regions, and the making of an `image-map`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fanlight.artifact import Artifact
from fanlight.errors import InvalidField
from fanlight.explainers import evaluate, inpaint
from fanlight.explainers.base import Context, Item

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

Baseline = Literal["grey", "black", "white", "mean", "blur"]
BASELINE = (
    "What takes the place of a hidden part: mid grey, black, white, the picture's mean colour, or the picture blurred."
)
Filling = Literal["grey", "black", "white", "mean", "blur", "noise"]
FILLING = (
    "What takes the place of a hidden part: mid grey, black, white, the picture's mean colour, the picture blurred, or "
    "noise drawn from the seed."
)
Hiding = Literal["grey", "black", "white", "mean", "blur", "noise", "inpaint"]
HIDING = (
    "What takes the place of a hidden part: mid grey, black, white, the picture's mean colour, the picture blurred, "
    "noise drawn from the seed, or what is shown around it, continued smoothly (in-painting)."
)
COLOURS: dict[str, float] = {"grey": 127.5, "black": 0.0, "white": 255.0}
BLUR = 1 / 20  # standard deviation of the blur, as a share of the shorter side: about 11 px of 224


def baseline(model: ImageClassifier, item: Item, name: Filling) -> Tensor:
    """The reference picture in model space, (3, H, W)."""
    if name in COLOURS:
        return model.colour((COLOURS[name],) * 3).expand_as(item.x)
    if name == "mean":
        return item.x.mean((1, 2), keepdim=True).expand_as(item.x)
    if name == "noise":
        return _noise(model, item)
    return blurred(item.x, BLUR * min(item.x.shape[1:]))


def hider(model: ImageClassifier, item: Item, name: Hiding) -> Callable[[Tensor], Tensor]:
    """Hides parts of a picture: which pixels are kept, (M, H, W) bool -> the pictures, (M, 3, H, W)."""
    if name == "inpaint":
        return functools.partial(inpaint.harmonic, item.x)
    return functools.partial(evaluate.composite, item.x, baseline(model, item, name))


def hiding_rows(ctx: Context, name: Hiding) -> int:
    """Rows of a pass over pictures with hidden parts: in-painting takes longer than the model, so that half as many make a step."""
    return max(1, ctx.chunk // 2) if name == "inpaint" else ctx.chunk


def seed_of(item: Item, name: Hiding) -> int | None:
    """What of the seed a baseline depends on: part of the key under which answers are kept."""
    return item.seed if name == "noise" else None


def _noise(model: ImageClassifier, item: Item) -> Tensor:
    """Every value of every pixel drawn on its own, uniformly from black to white, (3, H, W)."""
    import torch

    drawn = np.random.default_rng((item.seed, 1)).random(tuple(item.x.shape), dtype=np.float32)
    black, white = model.colour((0.0,) * 3), model.colour((255.0,) * 3)
    return black + (white - black) * torch.from_numpy(drawn).to(item.x.device)


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


def fits(name: str, side: int, size: tuple[int, int]) -> None:
    """Refuses a square that is larger than the whole picture."""
    if side > max(size):
        raise InvalidField(
            f"A square of {side} px is larger than the model's input, {size[0]} by {size[1]} px.",
            code="invalid_params",
            given={name: side},
            allowed={"maximum": max(size)},
            hint="Ask for smaller squares.",
        )


def read_out(flow: Tensor, prefix: int) -> Tensor:
    """What the answer's token is made of: (B, N, N) -> (B, N), the row of the first token where there is a prefix (the class
    token), else the mean of all rows (a model that averages its patches)."""
    return flow[:, 0] if prefix else flow.mean(1)


def of_tokens(share: Tensor, prefix: int, grid: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """A value for each token, (B, N), enlarged from those of the picture to its size: (B, H, W)."""
    import torch.nn.functional as F

    cells = share[:, prefix:].reshape(len(share), 1, *grid)
    return F.interpolate(cells, size, mode="bilinear", align_corners=False)[:, 0]


def own_head(item: Item, title: str) -> None:
    """Refuses the similarity to another picture, for methods that go through the network's own layers to its logits."""
    if item.target.similar_to is not None:
        raise InvalidField(
            f"{title} explains the outputs of a network, not the similarity to another picture.",
            code="invalid_target",
            given=item.target.json(),
            hint="Name a class, or choose another method.",
        )


def image_map(item: Item, value: Tensor, *, unit: str, signed: bool, **meta: Any) -> Artifact:
    """An `image-map` named "map" from (H, W) values."""
    about = {"unit": unit, "signed": signed, "box": list(item.box), "target": item.target.json(), **meta}
    return Artifact("map", "image-map", {"value": value.detach().float().cpu().numpy()}, about)
