"""SmoothGrad: the gradient, averaged over noisy copies of the picture."""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

UNIT = {"gradient": "{} per input unit", "squared": "squared {} per input unit"}


class SmoothGrad(base.Explainer):
    """Smilkov, Thorat, Kim, Viegas & Wattenberg, SmoothGrad (2017), section 3: the mean of dS/dx at x + N(0, sigma^2)."""

    name = "smooth-grad"
    title = "SmoothGrad"
    family = "attribution"
    summary = (
        "Where a tiny change of a pixel would change the answer most, on average over noisy copies of the picture."
    )
    reading = (
        "Bright pixels are those to which the model reacts most strongly around this picture, not only at it. "
        "It has less speckle than a plain gradient; like one, it says how sensitive the model is, "
        "not whether a pixel speaks for or against the class. "
        "The standard error says how far the map would change with other noise."
    )
    misleads = (
        "A smoother map looks more convincing and need not be more faithful. "
        "The noise decides what is shown: much of it asks about pictures that the model has never seen. "
        "Squared, it favours whatever varies, and looks clean for that reason."
    )
    paper = base.Paper(
        "Smilkov, Thorat, Kim, Viegas & Wattenberg: SmoothGrad: Removing Noise by Adding Noise. 2017",
        "https://arxiv.org/abs/1706.03825",
        "@misc{smilkov2017smoothgrad, title={SmoothGrad: Removing Noise by Adding Noise}, author={Smilkov, Daniel and "
        "Thorat, Nikhil and Kim, Been and Vi{\\'e}gas, Fernanda and Wattenberg, Martin}, eprint={1706.03825}, "
        "archivePrefix={arXiv}, year={2017}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        samples: int = Field(32, ge=2, le=512, description="Noisy copies of the picture to average over.")
        noise: float = Field(
            0.15,
            ge=0,
            le=1,
            description="Standard deviation of the noise, as a share of the range of values in the picture.",
        )
        average: Literal["gradient", "squared"] = Field(
            "gradient", description="What is averaged: the gradient (as published), or its square."
        )
        channels: Literal["max", "sum"] = Field(
            "max", description="How the magnitudes of red, green and blue become one: the largest or their sum."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        return 2 * params.samples

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append([(yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items)))])
        return found


def _explain(
    model: ImageClassifier, item: base.Item, params: SmoothGrad.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, Artifact]:
    import torch

    sigma = params.noise * float(item.x.max() - item.x.min())
    rng = np.random.default_rng(item.seed)
    total = torch.zeros(item.x.shape, dtype=torch.float64, device=item.x.device)
    squares = torch.zeros_like(total)

    def made(total: Tensor, n: int, **meta: object) -> Artifact:
        size = (total / n).abs()  # (3, H, W)
        value = size.amax(0) if params.channels == "max" else size.sum(0)
        return maps.image_map(item, value, unit=UNIT[params.average].format(model.measure), signed=False, **meta)

    for start, stop, rows in evaluate.chunks(params.samples, evaluate.series_rows(model, ctx)):
        drawn = rng.standard_normal((stop - start, *item.x.shape), dtype=np.float32)
        x = item.x + sigma * torch.from_numpy(drawn).to(item.x.device)
        grads = evaluate.gradient(model, x, [item.target] * (stop - start), rows).double()
        grads = grads.square() if params.average == "squared" else grads
        total += grads.sum(0)
        squares += grads.square().sum(0)
        yield base.Step(
            lo + (hi - lo) * stop / params.samples, f"{stop} copies", functools.partial(made, total.clone(), stop)
        )
    n = params.samples
    mean = total / n
    spread = (
        (squares / n - mean.square()).clamp(min=0) * n / (n - 1)
    ).sum()  # of single gradients, all pixels together
    error = float((spread / n).sqrt() / mean.square().sum().sqrt()) if mean.any() else None
    return made(total, n, samples=n, noise=params.noise, sigma=sigma, standard_error=error)
