"""Input x Gradient: the slope at each pixel times how far the pixel is from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class InputXGradient(base.Explainer):
    """Shrikumar, Greenside, Shcherbina & Kundaje, Not Just a Black Box (2016), section 2: x_i dS/dx_i, summed over the
    channels."""

    name = "input-x-gradient"
    title = "Input × Gradient"
    family = "attribution"
    summary = "The slope at each pixel, times how far the pixel is from zero."
    reading = (
        "Positive pixels speak for the explained value, negative ones against it, as far as the slope at this picture tells. "
        "Of a linear model without a bias the values add up to the answer; of others they need not."
    )
    misleads = (
        "What is zero is an accident of the preprocessing: a pixel of exactly that colour gets nothing, however important. "
        "Where the answer is saturated the slope is flat and the map is empty or noise. Single pixels are noisy."
    )
    paper = base.Paper(
        "Shrikumar, Greenside, Shcherbina & Kundaje: Not Just a Black Box: Learning Important Features Through "
        "Propagating Activation Differences. 2016",
        "https://arxiv.org/abs/1605.01713",
        "@misc{shrikumar2016not, title={Not Just a Black Box: Learning Important Features Through Propagating Activation "
        "Differences}, author={Shrikumar, Avanti and Greenside, Peyton and Shcherbina, Anna and Kundaje, Anshul}, "
        "eprint={1605.01713}, archivePrefix={arXiv}, year={2016}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        zero: Literal["model", "grey", "black", "white", "mean", "blur"] = Field(
            "model",
            description="What counts as zero: that of the model's own input (as published), or a picture that the "
            "distance is measured from.",
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one gradient, whatever the size)
        return 2

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        import torch

        found = []
        for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
            batch = items[start:stop]
            grads = evaluate.gradient(model, torch.stack([i.x for i in batch]), [i.target for i in batch], rows)
            for item, slope in zip(batch, grads, strict=True):
                value = (_distance(model, item, params) * slope).sum(0)  # (H, W)
                found.append(
                    [
                        maps.image_map(
                            item,
                            value,
                            unit=f"{model.measure} per pixel",
                            signed=True,
                            zero=params.zero,
                            f_x=float(item.target.value(item.logits[None])),
                            total=float(value.double().sum()),
                        )
                    ]
                )
            yield base.Step(stop / len(items))
        return found


def _distance(model: ImageClassifier, item: base.Item, params: InputXGradient.Params) -> Tensor:
    """(3, H, W): the picture, less what counts as zero."""
    return item.x if params.zero == "model" else item.x - maps.baseline(model, item, params.zero)
