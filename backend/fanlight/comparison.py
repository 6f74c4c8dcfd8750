"""Two to four maps compared: how far they agree, and where they differ. Pure functions of artifacts, without a model.

Maps may lie on different grids. A common grid divides what they all show: of one picture the part that all models saw, of different
pictures each map's whole extent. Values on it are means over the area of a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fanlight.artifact import Artifact

Array = np.ndarray[Any, np.dtype[Any]]
Box = tuple[float, float, float, float]

GRID = 28
"""Cells along each side for agreement: finer than what a person tells apart, coarser than the noise of single pixels."""
MAPS = ("image-map", "region-scores")
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
PERCENTILE = 99.5  # of |value|: the end of a map's own scale, as in drawing.scale


def plane(artifact: Artifact) -> Array:
    """(H, W) float64: the value of every pixel of the model's input; of regions that of their region. ValueError for other kinds."""
    if artifact.kind not in MAPS:
        raise ValueError(f"a result of kind {artifact.kind} has no value per pixel")
    value = artifact.arrays["value"].astype(np.float64)
    return value[artifact.arrays["label"]] if artifact.kind == "region-scores" else value


def windows(maps: Sequence[Artifact], same_picture: bool) -> list[Box] | None:
    """The part of each map, as fractions x0, y0, x1, y1 of it, that shows the same; None where they show nothing in common."""
    if not same_picture:
        return [WHOLE] * len(maps)
    boxes = [tuple(float(v) for v in m.meta["box"]) for m in maps]
    x0, y0 = max(b[0] for b in boxes), max(b[1] for b in boxes)
    x1, y1 = min(b[2] for b in boxes), min(b[3] for b in boxes)
    if x0 >= x1 or y0 >= y1:
        return None
    return [
        (
            (x0 - b[0]) / (b[2] - b[0]),
            (y0 - b[1]) / (b[3] - b[1]),
            (x1 - b[0]) / (b[2] - b[0]),
            (y1 - b[1]) / (b[3] - b[1]),
        )
        for b in boxes
    ]


def resampled(values: Array, window: Box, shape: tuple[int, int]) -> Array:
    """`shape` means of (H, W) `values` over equal cells of `window`; a pixel counts by the area that a cell covers of it."""
    x0, y0, x1, y1 = window
    down = _weights(values.shape[0], y0, y1, shape[0])
    across = _weights(values.shape[1], x0, x1, shape[1])
    made: Array = down @ values @ across.T
    return made


def _weights(size: int, start: float, end: float, cells: int) -> Array:
    """(cells, size): the share of each pixel in the mean of each cell; rows add up to 1."""
    edges = np.linspace(start * size, end * size, cells + 1)
    low, high = edges[:-1, None], edges[1:, None]
    pixel = np.arange(size)
    covered = np.clip(np.minimum(high, pixel + 1) - np.maximum(low, pixel), 0, None)
    share: Array = covered / covered.sum(axis=1, keepdims=True)
    return share


def ranks(values: Array) -> Array:
    """Ranks from 1 of the flattened values; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values.ravel(), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Array = (last - (counts - 1) / 2)[inverse.ravel()]
    return mean


def rank_correlation(a: Array, b: Array) -> float | None:
    """Spearman's coefficient, -1 to 1, with ties; None where one of them is the same everywhere (C. Spearman, 1904)."""
    x, y = (r - r.mean() for r in (ranks(a), ranks(b)))
    size = float(np.sqrt((x @ x) * (y @ y)))
    return None if size == 0 else float(np.clip((x @ y) / size, -1, 1))


def agreement(maps: Sequence[Artifact], *, same_picture: bool) -> list[list[float | None]]:
    """(n, n) rank correlations on the common grid; of a pair of which one has no sign, those of magnitudes."""
    n = len(maps)
    found: list[list[float | None]] = [[None] * n for _ in range(n)]
    parts = windows(maps, same_picture)
    if parts is None:
        return found
    planes = [plane(m) for m in maps]
    signed = [bool(m.meta["signed"]) for m in maps]
    for i in range(n):
        for j in range(i, n):
            pair = [planes[k] if signed[i] and signed[j] else np.abs(planes[k]) for k in (i, j)]
            on_grid = [resampled(p, parts[k], (GRID, GRID)) for p, k in zip(pair, (i, j), strict=True)]
            found[i][j] = found[j][i] = rank_correlation(*on_grid)
    return found


def reach(artifact: Artifact) -> float:
    """The end of a map's own scale, above 0."""
    size = np.abs(artifact.arrays["value"])
    return float(np.percentile(size, PERCENTILE)) or float(size.max()) or 1.0


def comparable(maps: Sequence[Artifact]) -> bool:
    """Whether their numbers mean the same: one unit, and all or none with a sign."""
    return len({(str(m.meta["unit"]), bool(m.meta["signed"])) for m in maps}) == 1


def difference(a: Artifact, b: Artifact, *, same_picture: bool) -> Artifact:
    """First minus second as a signed map on the finer of the two grids, over what both show.

    In their unit where that is one; else each is divided by the end of its own scale first, and the unit says so.

    Raises:
        ValueError: they show nothing in common.
    """
    parts = windows([a, b], same_picture)
    if parts is None:
        raise ValueError("the two maps show no part of the picture in common")
    planes = [plane(m) for m in (a, b)]
    unit = str(a.meta["unit"])
    if not comparable([a, b]):
        planes = [p / reach(m) for p, m in zip(planes, (a, b), strict=True)]
        unit = "difference of shares of each map's own scale"
    shape = max((p.shape for p in planes), key=lambda s: s[0] * s[1])
    first, second = (resampled(p, w, (shape[0], shape[1])) for p, w in zip(planes, parts, strict=True))
    x0, y0, x1, y1 = (float(v) for v in a.meta["box"])
    u0, v0, u1, v1 = parts[0]
    box = [x0 + u0 * (x1 - x0), y0 + v0 * (y1 - y0), x0 + u1 * (x1 - x0), y0 + v1 * (y1 - y0)]
    value = (first - second).astype(np.float32)
    return Artifact("difference", "image-map", {"value": value}, {"unit": unit, "signed": True, "box": box}).check()
