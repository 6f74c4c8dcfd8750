"""The random map: a floor. Whatever a method shows must beat it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fanlight.explainers import base, maps

if TYPE_CHECKING:
    from fanlight.adapters.base import ImageClassifier


class Random(base.Explainer):
    """Hooker, Erhan, Kindermans & Kim (NeurIPS 2019), section 4: random attribution as the floor of a benchmark."""

    name = "random"
    title = "Random (floor)"
    family = "floor"
    summary = "Random squares, for comparison: a method that is no better explains nothing."
    reading = (
        "There is nothing to read here: every square has a random value, drawn from the seed. "
        "Look at it beside another map to see what chance looks like, in the picture and in its faithfulness."
    )
    misleads = "People see shapes in noise. If this map seems to make sense to you, be careful with the others too."
    paper = base.Paper(
        "Hooker, Erhan, Kindermans & Kim: A Benchmark for Interpretability Methods in Deep Neural Networks. NeurIPS "
        "2019",
        "https://arxiv.org/abs/1806.10758",
        "@inproceedings{hooker2019benchmark, title={A Benchmark for Interpretability Methods in Deep Neural Networks}, "
        "author={Hooker, Sara and Erhan, Dumitru and Kindermans, Pieter-Jan and Kim, Been}, booktitle={NeurIPS}, "
        "year={2019}}",
    )
    accepts = "image-classifier"
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        patch: int = Field(
            16, ge=1, le=128, description="Side of a square of equal value in pixels of the model's input."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the model is not asked)
        return 0

    @classmethod
    def check(cls, params: Params, size: tuple[int, int]) -> None:
        maps.fits("patch", params.patch, size)

    def run(
        self,
        model: ImageClassifier,
        items: Sequence[base.Item],
        params: Params,
        ctx: base.Context,  # noqa: ARG002 (the model is not asked)
    ) -> base.Run:
        import torch

        label = maps.squares(model.size, params.patch)
        found = []
        for n, item in enumerate(items):
            value = np.random.default_rng(item.seed).random(int(label.max()) + 1, dtype=np.float32)
            found.append([maps.image_map(item, torch.from_numpy(value[label]), unit="random", signed=False)])
            yield base.Step((n + 1) / len(items))
        return found
