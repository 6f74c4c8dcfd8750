"""Artifact kind `region-scores`: a value per region of the picture, for every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Resampling

from fanlight.artifact import Artifact
from fanlight.drawing import colour, places, scale
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.image_map import fitted
from fanlight.drawing.number import shares

Array = np.ndarray[Any, np.dtype[Any]]


def spread(artifact: Artifact) -> Array:
    """(H, W) float64: each region's value divided among its pixels, so that a sum over a place is its evidence."""
    label, value = artifact.arrays["label"], artifact.arrays["value"].astype(np.float64)
    area = np.bincount(label.ravel(), minlength=len(value))
    per_pixel: Array = (value / np.maximum(area, 1))[label]
    return per_pixel


class RegionScores:
    kind = "region-scores"

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
        """One flat colour per region; edges stay sharp, because between two regions there is no value."""
        label, value = artifact.arrays["label"], artifact.arrays["value"]
        ends = self.legend(artifact, cmap=cmap, lo=lo, hi=hi)
        drawn = Image.fromarray(colour.colours(value, ends.lo, ends.hi, ends.cmap)[label])
        return drawn.resize(fitted(label.shape, size)[::-1], Resampling.NEAREST)

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:
        """A row per region, strongest first; with `classes` also the class that each region speaks most for."""
        label, value, scores = (artifact.arrays[k] for k in ("label", "value", "all"))
        area = np.maximum(np.bincount(label.ravel(), minlength=len(value)), 1)
        ys, xs = np.indices(label.shape)
        y = np.bincount(label.ravel(), (ys.ravel() + 0.5) / label.shape[0], len(value)) / area
        x = np.bincount(label.ravel(), (xs.ravel() + 0.5) / label.shape[1], len(value)) / area
        part = shares([float(abs(v)) for v in value])
        rows = []
        for r in sorted(range(len(value)), key=lambda r: -abs(value[r])):
            row: tuple[Any, ...] = (r, places.name(y[r], x[r]), float(f"{value[r]:.3g}"), part[r])
            rows.append((*row, classes[int(scores[r].argmax())]) if classes else row)
        unit = str(artifact.meta["unit"])
        heads = ("region", "place", f"value ({unit})" if unit else "value", "share of all (%)")
        return Table((*heads, "speaks most for") if classes else heads, tuple(rows))

    def detail(self, artifact: Artifact) -> dict[str, Any]:  # noqa: ARG002 (the picture says it all)
        return {}

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:
        return places.sentence(spread(artifact), signed=bool(artifact.meta["signed"]), target=target)
