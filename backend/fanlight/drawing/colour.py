"""Colour maps as tables, made here in OKLab (B. Ottosson, "A perceptual color space for image processing", 2020).

`diverging` runs from against through near-white to for; `sequential` has equal perceptual steps and rising lightness,
so that it reads the same without colour; `grey` is its colourless twin.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fanlight.errors import InvalidField

Array = np.ndarray[Any, np.dtype[Any]]

STEPS = 255  # odd: the middle of a diverging map is exactly its neutral colour
AGAINST, NEUTRAL, FOR = "#2B6CB0", "#F4F3EF", "#B2432F"

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(srgb: Array) -> Array:
    """(..., 3) sRGB in 0..1 -> L, a, b."""
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    lab: Array = np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T
    return lab


def from_oklab(lab: Array) -> Array:
    """(..., 3) L, a, b -> sRGB; outside 0..1 where the colour is not in the gamut."""
    linear = (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T
    high = 1.055 * np.abs(linear) ** (1 / 2.4) - 0.055
    srgb: Array = np.where(linear <= 0.0031308, linear * 12.92, high)
    return srgb


def rgb(hex: str) -> Array:
    """ "#2B6CB0" -> (3,) in 0..1."""
    return np.array([int(hex[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _even(path: Array) -> Array:
    """(P, 3) OKLab -> (STEPS, 3) on the same path, equally far apart."""
    along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    at = np.linspace(0, along[-1], STEPS)
    return np.stack([np.interp(at, along, path[:, i]) for i in range(3)], axis=1)


def _diverging() -> Array:
    ends = [oklab(rgb(c)) for c in (AGAINST, NEUTRAL, FOR)]
    half = np.linspace(0, 1, STEPS // 2 + 1)[:, None]
    low, high = (ends[i] + half * (ends[i + 1] - ends[i]) for i in (0, 1))
    return np.concatenate([low, high[1:]])


def _sequential() -> Array:
    """Violet over teal to yellow, as colourful as sRGB allows on the way."""
    t = np.linspace(0, 1, 2001)
    hue = np.radians(300 - 200 * t)
    chroma = 0.12 - 0.15 * t + 0.2 * t**2
    return _even(np.stack([0.24 + 0.68 * t, chroma * np.cos(hue), chroma * np.sin(hue)], axis=1))


def _grey() -> Array:
    return np.linspace([0.0, 0, 0], [1.0, 0, 0], STEPS)


MAPS = {"diverging": _diverging, "sequential": _sequential, "grey": _grey}


@functools.cache
def table(cmap: str) -> Array:
    """(STEPS, 3) uint8."""
    if cmap not in MAPS:
        raise InvalidField(f"There is no colour map named “{cmap}”.", given=cmap, allowed=list(MAPS))
    return np.round(np.clip(from_oklab(MAPS[cmap]()), 0, 1) * 255).astype(np.uint8)


def colours(values: Array, lo: float, hi: float, cmap: str) -> Array:
    """(...) -> (..., 3) uint8; what lies beyond an end has the colour of that end."""
    at = np.clip((values - lo) * ((STEPS - 1) / (hi - lo)), 0, STEPS - 1) + 0.5
    picked: Array = table(cmap)[at.astype(np.uint8)]
    return picked


def stops(cmap: str, count: int = 9) -> tuple[str, ...]:
    """Hex colours from the first to the last, evenly spaced."""
    rows = table(cmap)[np.linspace(0, STEPS - 1, count).round().astype(int)]
    return tuple("#" + bytes(row).hex().upper() for row in rows)
