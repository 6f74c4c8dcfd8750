"""RISE: how much higher the answer is, on average over many random masks, when a pixel is shown."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.errors import InvalidField
from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class RISE(base.Explainer):
    """Petsiuk, Das & Saenko, RISE (BMVC 2018), equation 6, on logits and less the mean over all masks:
    S_i = sum_m (f(x * M_m) - mean f) M_mi / sum_m M_mi."""

    name = "rise"
    title = "RISE"
    family = "attribution"
    summary = "How much higher the answer is when a pixel is shown, on average over many random masks."
    reading = (
        "Positive areas are those with which the explained value is higher than on average over the masks, negative ones "
        "those with which it is lower. The standard error says how much of the map is chance: "
        "what is not well above it is noise. Another class of the same picture costs nothing more."
    )
    misleads = (
        "With few masks the map is blotchy, and the blotches are the masks. It is smooth because the masks are, whatever "
        "the model looks at; nothing finer than a cell can be told apart. "
        "Half-hidden pictures look like none the model has seen."
    )
    paper = base.Paper(
        "Petsiuk, Das & Saenko: RISE: Randomized Input Sampling for Explanation of Black-box Models. BMVC 2018",
        "https://arxiv.org/abs/1806.07421",
        "@inproceedings{petsiuk2018rise, title={RISE: Randomized Input Sampling for Explanation of Black-box Models}, "
        "author={Petsiuk, Vitali and Das, Abir and Saenko, Kate}, booktitle={BMVC}, year={2018}}",
    )
    accepts = "image-classifier"
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        samples: int = Field(
            1024, ge=32, le=16384, description="Random masks, each one a picture to ask the model about."
        )
        cells: int = Field(
            7, ge=2, le=32, description="Cells of a mask along each side, before it is enlarged smoothly."
        )
        share: float = Field(0.5, ge=0.1, le=0.9, description="Share of the cells that is shown, on average.")
        baseline: maps.Filling = Field("grey", description=maps.FILLING)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        return params.samples

    @classmethod
    def check(cls, params: Params, size: tuple[int, int]) -> None:
        if params.cells > min(size):
            raise InvalidField(
                f"{params.cells} cells along a side are more than the {min(size)} pixels of the model's input there.",
                code="invalid_params",
                given={"cells": params.cells},
                allowed={"maximum": min(size)},
                hint="Ask for fewer cells.",
            )

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append([(yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items)))])
        return found


class Masks:
    """Smooth random masks, drawn from a seed; the same whether made one by one or in chunks.

    Args:
        size: (H, W).
    """

    def __init__(self, params: RISE.Params, size: tuple[int, int], seed: int):
        rng = np.random.default_rng(seed)
        self.size, self.cell = size, tuple(-(-n // params.cells) for n in size)  # pixels of a cell, rounded up
        self.grid = rng.random((params.samples, params.cells, params.cells)) < params.share
        self.shift = rng.integers(0, self.cell, (params.samples, 2))

    def make(self, start: int, stop: int, like: Tensor) -> Tensor:
        """(stop - start, H, W), values 0 (hidden) to 1 (shown)."""
        import torch
        import torch.nn.functional as F

        grid = torch.from_numpy(self.grid[start:stop]).to(like)[:, None]
        large = tuple((grid.shape[2] + 1) * n for n in self.cell)
        wide = F.interpolate(grid, large, mode="bilinear", align_corners=False)[:, 0]
        return torch.stack(
            [
                w[r : r + self.size[0], c : c + self.size[1]]
                for w, (r, c) in zip(wide, self.shift[start:stop], strict=True)
            ]
        )


class Sums:
    """What the map is made of, added up mask by mask: sums over masks of f^p, M f^p and M^2 f^p, p = 0, 1, 2."""

    def __init__(self, masks: Masks, like: Tensor):
        import torch

        self.masks, self.like, self.n = masks, like, 0
        self.plain = torch.zeros(3, dtype=torch.float64, device=like.device)
        self.once, self.twice = (torch.zeros(3, *masks.size, dtype=torch.float64, device=like.device) for _ in range(2))

    def add(self, values: Tensor, stop: int) -> None:
        """Takes in the masks up to `stop`; values (M,) float64 of all masks, from any zero."""
        import torch

        mask = self.masks.make(self.n, stop, self.like).double()
        f = values[self.n : stop].to(mask.device)
        powers = torch.stack([torch.ones_like(f), f, f * f])
        self.plain += powers.sum(1)
        self.once += torch.einsum("pm,mhw->phw", powers, mask)
        self.twice += torch.einsum("pm,mhw->phw", powers, mask * mask)
        self.n = stop

    def map(self) -> tuple[Tensor, Tensor]:
        """The map and its standard error, (H, W) each; the error from what each mask moves, to first order."""
        n, total, squares = self.plain
        weight = self.once[0].clamp(min=1e-9)
        shown, mean = self.once[1] / weight, total / n
        share = weight / n
        own = (self.twice[2] - 2 * shown * self.twice[1] + shown * shown * self.twice[0]) / share**2
        both = (self.once[2] - (shown + mean) * self.once[1] + shown * mean * self.once[0]) / share
        spread = own - 2 * both + squares - n * mean * mean
        return shown - mean, spread.clamp(min=0).sqrt() / n


def _explain(
    model: ImageClassifier, item: base.Item, params: RISE.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, Artifact]:
    size = (item.x.shape[1], item.x.shape[2])
    RISE.check(params, size)
    masks = Masks(params, size, item.seed)
    sums = Sums(masks, item.x)
    f_x = float(item.target.value(item.logits[None]))
    end = lo + 0.9 * (hi - lo)

    def made(**meta: object) -> Artifact:
        return maps.image_map(item, sums.map()[0], unit=model.measure, signed=True, **meta)

    def so_far(logits: Tensor) -> Artifact:
        sums.add(item.target.value(logits).double() - f_x, len(logits))
        return made()

    def evaluation() -> Generator[base.Step, None, Tensor]:
        reference = maps.baseline(model, item, params.baseline)
        way = item.x - reference

        def picture(start: int, stop: int) -> Tensor:
            return reference + masks.make(start, stop, item.x)[:, None] * way

        return (yield from evaluate.logits(model, picture, params.samples, ctx, (lo, end), preview=so_far))

    key = ("rise", item.key, params.samples, params.cells, params.share, params.baseline, item.seed)
    logits = yield from evaluate.once(key, ctx, evaluation)
    values = item.target.value(logits).double() - f_x
    for _, stop, _ in evaluate.chunks(params.samples, 4 * ctx.chunk):
        if stop > sums.n:  # others were taken in for a preview
            sums.add(values, stop)
            yield base.Step(end + (hi - end) * stop / params.samples)
    value, error = sums.map()
    return made(
        samples=params.samples,
        cells=params.cells,
        share=params.share,
        baseline=params.baseline,
        standard_error=float(error.square().mean().sqrt()),
        spread=float(value.square().mean().sqrt()),
        f_x=f_x,
    )
