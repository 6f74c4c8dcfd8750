"""Prototype parts: does the same prototype land on the same part of the bird, and does it stay there?

Consistency and stability as defined by Huang et al. (Evaluation and Improvement of Interpretability for Self-Explainable Part-Prototype
Networks, ICCV 2023), with key points that are known instead of annotated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide.drawing import Drawing
from fanlight_models.worlds.fieldguide.table import PARTS

BOX = 72 / 224  # side of the square around a prototype's peak, as a share of the picture's side
CONSISTENT = 0.8
NOISE, CLIP = 0.2, 0.25  # of the perturbation, in units of the normalised input

Flags = NDArray[np.bool_]


def around(peaks: NDArray[np.floating], size: int, side: float = BOX) -> NDArray[np.float64]:
    """Peaks (n, 2) as (x, y) in pixels -> boxes (n, 4), x0 y0 x1 y1, of `side` times the picture's."""
    half = side * size / 2
    return np.concatenate((peaks - half, peaks + half), axis=1).astype(np.float64)


def landed(boxes: NDArray[np.floating], drawings: Sequence[Drawing]) -> tuple[Flags, Flags]:
    """Boxes (n, 4) of one prototype, one a picture -> which key points lie inside (n, 14), and which there are at all (n, 14)."""
    points = np.stack([d.points for d in drawings])
    there = np.asarray(np.isfinite(points).all(2), bool)
    x, y = points[..., 0] + 0.5, points[..., 1] + 0.5
    with np.errstate(invalid="ignore"):
        inside = (
            (x >= boxes[:, None, 0]) & (x <= boxes[:, None, 2]) & (y >= boxes[:, None, 1]) & (y <= boxes[:, None, 3])
        )
    return inside & there, there


def rates(inside: Flags, there: Flags) -> NDArray[np.float64]:
    """(14,): over the pictures in which a part can be seen, how often the prototype lands on it; NaN where it never can."""
    count = there.sum(0)
    return np.asarray(
        np.divide((inside & there).sum(0), count, out=np.full(len(PARTS), np.nan), where=count > 0), np.float64
    )


def consistency(found: Sequence[tuple[Flags, Flags]]) -> float:
    """Share of prototypes that land on some part in at least 80 % of the pictures of their class; one `landed` for each prototype."""
    best = [np.nanmax(r) if np.isfinite(r := rates(*f)).any() else 0.0 for f in found]
    return float(np.mean(np.array(best) >= CONSISTENT)) if best else float("nan")


def perturbation(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    """What is added to a normalised input before the prototypes are found again."""
    noise = np.random.default_rng(seed).normal(0.0, NOISE, shape)
    return np.clip(noise, -CLIP, CLIP).astype(np.float32)


def stability(before: Sequence[Flags], after: Sequence[Flags]) -> float:
    """Mean over prototypes of the share of pictures whose set of key points inside the box is the same under noise."""
    same = [float((a == b).all(1).mean()) for a, b in zip(before, after, strict=True)]
    return float(np.mean(same)) if same else float("nan")
