"""Maps over the pictures they explain: the overlay, the pair of picture and overlay on a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from fanlight import images
from fanlight.artifact import Artifact
from fanlight.decoding import Pixels
from fanlight.drawing import colour, renderer
from fanlight.drawing.image_map import fitted
from fanlight.errors import InvalidField

PICTURES = ("image-map", "region-scores")
"""Kinds that lie over the picture: their `meta["box"]` is the part of it that they cover. Others are drawn beside it, in its proportions."""

OWN = ("words",)
"""Kinds that hold their picture: the input is words."""

OPACITY = 0.65
GAP = 2
LARGEST = 1e30  # of an end of a scale: the difference of two is finite in float32


@dataclass(frozen=True)
class Style:
    """The caller's choice of colours.

    Args:
        cmap: a key of `colour.MAPS`; None: by the map's sign.
        lo, hi: ends of the scale; None: the map's own.
        opacity: of the map over the picture, 0..1.
    """

    cmap: str | None = None
    lo: float | None = None
    hi: float | None = None
    opacity: float = OPACITY

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Style:
        """From the view state of a page, which may hold more; raises InvalidField for a value that is none."""
        for key in ("lo", "hi", "opacity"):
            value = view.get(key)
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST < value < LARGEST
            if value is not None and not number:
                raise InvalidField(f"`{key}` of a view is a finite number.", given=value, allowed=[-LARGEST, LARGEST])
        opacity = view.get("opacity")
        if opacity is not None and not 0 <= opacity <= 1:
            raise InvalidField("`opacity` of a view lies between 0 and 1.", given=opacity, allowed=[0, 1])
        lo, hi = view.get("lo"), view.get("hi")
        if (lo is None) != (hi is None) or (lo is not None and hi is not None and not lo < hi):
            raise InvalidField("`lo` and `hi` of a view come together, `lo` below `hi`.", given=[lo, hi])
        if view.get("cmap") is not None and view["cmap"] not in list(colour.MAPS):
            raise InvalidField(
                "`cmap` of a view is the name of a colour map.", given=view["cmap"], allowed=[*colour.MAPS]
            )
        return cls(view.get("cmap"), lo, hi, OPACITY if opacity is None else float(opacity))

    @property
    def scale(self) -> dict[str, Any]:
        """The arguments that a renderer's `legend` and `image` share."""
        return {"cmap": self.cmap, "lo": self.lo, "hi": self.hi}


PLAIN = Style()


def picture(pixels: Pixels, artifact: Artifact, *, size: int = 512) -> Image.Image:
    """What the model saw: the box of `artifact` in the stored picture, longer side `size`; of a picture that a model drew, that one."""
    if artifact.kind in OWN:
        own: Pixels = artifact.arrays["picture"]
        return Image.fromarray(own).resize(fitted(own.shape[:2], size)[::-1], Image.Resampling.NEAREST)
    return images.crop_resize(pixels, artifact.meta["box"], fitted(grid(artifact), size))


def overlay(pixels: Pixels, artifact: Artifact, *, size: int = 512, style: Style = PLAIN) -> Image.Image:
    """The map over the picture without its colours, so that every colour seen belongs to the map.

    `pixels` (h, w, 3) is the stored picture, with the edits of the explanation applied. What is no map is drawn alone.
    """
    if artifact.kind not in PICTURES:
        return _alone(artifact, size)
    return _blend(picture(pixels, artifact, size=size), artifact, size, style)


def beside(pixels: Pixels, artifact: Artifact, *, size: int = 320, style: Style = PLAIN) -> Image.Image:
    """Picture and overlay side by side, each with longer side `size`; a card is recognised by the first."""
    left = picture(pixels, artifact, size=size)
    right = _blend(left, artifact, size, style) if artifact.kind in PICTURES else _alone(artifact, size)
    pair = Image.new("RGB", (2 * left.width + GAP, left.height), "white")
    pair.paste(left, (0, 0))
    pair.paste(right, (left.width + GAP, 0))
    return pair


def _blend(under: Image.Image, artifact: Artifact, size: int, style: Style) -> Image.Image:
    drawn = renderer(artifact.kind).image(artifact, size=size, **style.scale)
    return Image.blend(under.convert("L").convert("RGB"), drawn, style.opacity)


def _alone(artifact: Artifact, size: int) -> Image.Image:
    """A drawing that is no map, as large as the picture beside it."""
    height, width = fitted(grid(artifact), size)
    drawn = renderer(artifact.kind).image(artifact, size=max(height, width))
    scale = min(width / drawn.width, height / drawn.height)
    within = drawn.resize(
        (max(1, round(drawn.width * scale)), max(1, round(drawn.height * scale))), Image.Resampling.LANCZOS
    )
    sheet = Image.new("RGB", (width, height), "white")
    sheet.paste(within, ((width - within.width) // 2, (height - within.height) // 2))
    return sheet


def grid(artifact: Artifact) -> tuple[int, int]:
    """(H, W) of the grid of a map; of what is no map, the proportions of the part of the picture that it is about."""
    if artifact.kind in OWN:
        height, width, _ = artifact.arrays["picture"].shape
        return height, width
    if artifact.kind not in PICTURES:
        x0, y0, x1, y1 = artifact.meta["box"]
        return max(1, round(y1 - y0)), max(1, round(x1 - x0))
    values: np.ndarray[Any, Any] = artifact.arrays["label" if artifact.kind == "region-scores" else "value"]
    return values.shape[0], values.shape[1]
