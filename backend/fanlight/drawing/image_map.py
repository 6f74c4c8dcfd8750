"""Artifact kind `image-map`: a value per pixel of the model's input."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Resampling

from fanlight.artifact import Artifact
from fanlight.drawing import colour, places, scale
from fanlight.drawing.base import Legend, Table


def fitted(shape: tuple[int, int], size: int | None) -> tuple[int, int]:
    """(height, width) of an (H, W) map whose longer side is to be `size`."""
    height, width = shape
    factor = 1.0 if size is None else size / max(height, width)
    return max(1, round(height * factor)), max(1, round(width * factor))


class ImageMap:
    kind = "image-map"

    def legend(
        self, artifact: Artifact, *, cmap: str | None = None, lo: float | None = None, hi: float | None = None
    ) -> Legend:
        return scale.legend(artifact, artifact.arrays["value"], cmap=cmap, lo=lo, hi=hi)

    def image(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,
        lo: float | None = None,
        hi: float | None = None,
        size: int | None = None,
        dark: bool = False,  # noqa: ARG002 (a map has the same colours in both schemes)
    ) -> Image.Image:
        """Values are interpolated, not colours: a diverging map never shows a colour that is not on its scale."""
        value = artifact.arrays["value"]
        ends = self.legend(artifact, cmap=cmap, lo=lo, hi=hi)
        target = fitted(value.shape, size)
        if target != value.shape:
            plane = Image.fromarray(np.ascontiguousarray(value, np.float32))
            value = np.asarray(plane.resize(target[::-1], Resampling.BILINEAR))
        return Image.fromarray(colour.colours(value, ends.lo, ends.hi, ends.cmap))

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:  # noqa: ARG002
        return places.table(
            artifact.arrays["value"], signed=bool(artifact.meta["signed"]), unit=str(artifact.meta["unit"])
        )

    def detail(self, artifact: Artifact) -> dict[str, Any]:  # noqa: ARG002 (the picture says it all)
        return {}

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:
        return places.sentence(artifact.arrays["value"], signed=bool(artifact.meta["signed"]), target=target)
