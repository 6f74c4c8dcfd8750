"""How near a map comes to a mask, or to a map that is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Map = NDArray[np.float64]
Mask = NDArray[np.bool_]


def auc(values: Map, mask: Mask) -> float:
    """Probability that a pixel inside has a higher value than one outside, ties counting half. 0.5: chance. Errors: ValueError for an empty side."""
    inside, outside = values[mask], values[~mask]
    if not len(inside) or not len(outside):
        raise ValueError("An AUC needs pixels inside and outside of the mask.")
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, "left") + np.searchsorted(ordered, inside, "right")
    return float(below.mean() / 2 / len(outside))


def pointing(values: Map, mask: Mask) -> bool:
    """Whether the highest value lies inside."""
    return bool(mask.flat[int(values.argmax())])


def best_iou(values: Map, mask: Mask) -> float:
    """Intersection over union at the best of all thresholds: an oracle chooses it, so it is an upper bound."""
    order = np.argsort(-values, axis=None)
    hits = np.cumsum(mask.flat[order])
    counts = np.arange(1, len(order) + 1)
    return float((hits / (counts + mask.sum() - hits)).max())


def inside(values: Map, mask: Mask) -> float:
    """Share of the positive values that lies inside; 0 where nothing is positive."""
    positive = values.clip(0)
    return float(positive[mask].sum() / positive.sum()) if positive.sum() > 0 else 0.0


def correlation(values: Map, truth: Map) -> float:
    """Pearson's, over pixels; 0 where one is constant."""
    a, b = (m.ravel() - m.mean() for m in (values, truth))
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else 0.0
