"""Parts of a picture, as masks, in colours and numbered."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Array = np.ndarray[Any, np.dtype[Any]]
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Told apart by people who do not see all colours (M. Okabe and K. Ito, 2002); beyond eight they come again, and the number tells."""
GREY, FILL = 0.55, 0.7


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def overlay(image: Array, masks: Array, points: Array, size: int) -> Image.Image:
    """The picture in pale grey with each part filled, and its number, from 1, at its key point.

    Args: image: (h, w, 3) uint8; masks: (P, h, w) bool; points: (P, 2) x, y in pixels, NaN where a part cannot be seen; size: of the longer side.
    """
    h, w = image.shape[:2]
    grey = image.astype(np.float32).mean(2, keepdims=True)
    base = np.broadcast_to(255 - GREY * (255 - grey), image.shape).copy()
    for n, mask in enumerate(masks):
        rgb = np.array([int(colour(n)[i : i + 2], 16) for i in (1, 3, 5)], np.float32)
        base[mask] = (1 - FILL) * base[mask] + FILL * rgb
    scale = size / max(h, w)
    shown = Image.fromarray(base.round().astype(np.uint8)).resize(
        (max(1, round(w * scale)), max(1, round(h * scale))), Image.Resampling.LANCZOS
    )
    pen, font = ImageDraw.Draw(shown), ImageFont.load_default(max(9, size // 28))
    for n, (x, y) in enumerate(points):
        if np.isfinite(x):
            at = ((x + 0.5) * scale, (y + 0.5) * scale)
            pen.text(at, str(n + 1), "white", font, "mm", stroke_width=2, stroke_fill="black")
    return shown
