"""Saliency: how strongly the target's value reacts to each pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from fanlight.adapters.base import ImageClassifier


class Saliency(base.Explainer):
    """Simonyan, Vedaldi & Zisserman, Deep Inside Convolutional Networks (2014), section 3: M_ij = max_c |dS/dx_cij|."""

    name = "saliency"
    title = "Saliency"
    family = "attribution"
    summary = "Where a tiny change of a pixel would change the answer most."
    reading = (
        "Bright pixels are those to which the model reacts most strongly: a tiny change there moves the explained "
        "value most. "
        "It says how sensitive the model is, not whether a pixel speaks for or against the class."
    )
    misleads = (
        "It looks only at the immediate neighbourhood of this picture: evidence that is already complete (saturated) "
        "has no slope and "
        "stays dark. Edges and texture are bright for almost any class, so compare with the edge detector and with "
        "another class."
    )
    paper = base.Paper(
        "Simonyan, Vedaldi & Zisserman: Deep Inside Convolutional Networks. ICLR Workshop 2014",
        "https://arxiv.org/abs/1312.6034",
        "@inproceedings{simonyan2014deep, title={Deep Inside Convolutional Networks: Visualising Image Classification"
        " Models and "
        "Saliency Maps}, author={Simonyan, Karen and Vedaldi, Andrea and Zisserman, Andrew}, booktitle={ICLR "
        "Workshop}, year={2014}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        channels: Literal["max", "sum"] = Field(
            "max",
            description="How the magnitudes of red, green and blue become one: the largest (as published) or their sum.",
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
            size = grads.abs()  # (B, 3, H, W)
            value = size.amax(1) if params.channels == "max" else size.sum(1)
            found += [
                [maps.image_map(i, v, unit=f"{model.measure} per input unit", signed=False)]
                for i, v in zip(batch, value, strict=True)
            ]
            yield base.Step(stop / len(items))
        return found
