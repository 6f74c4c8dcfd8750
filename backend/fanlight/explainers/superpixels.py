"""Superpixels: a picture cut into connected regions of alike colour, by k-means on colour and place; numpy alone.

Achanta, Shaji, Smith, Lucchi, Fua & Süsstrunk, SLIC Superpixels (IEEE TPAMI 2012): centres start on a grid, a pixel is
compared with the centres of its own cell of that grid and the eight around it, and what is not connected to the main
part of its region joins a neighbour.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from fanlight.errors import InvalidField
from fanlight.explainers.base import Step

if TYPE_CHECKING:
    from fanlight.explainers.base import Context, Item

Label = np.ndarray[Any, np.dtype[np.int32]]
Floats = np.ndarray[Any, np.dtype[np.float32]]
Pixels = np.ndarray[Any, np.dtype[np.uint8]]
ROUNDS = 8
LARGE = 512  # a longer side is thinned out before it is cut, so that a round stays short
REGIONS = "Superpixels to cut the picture into; there may be a few less. Not more than its pixels."
COMPACTNESS = "How much place counts beside colour: higher gives squarer regions."


def check(regions: int, size: tuple[int, int]) -> None:
    """Refuses more regions than there are pixels."""
    pixels = size[0] * size[1]
    if regions > pixels:
        raise InvalidField(
            f"{regions} superpixels are more than the {pixels} pixels of the model's input, {size[0]} by {size[1]}.",
            code="invalid_params",
            given={"regions": regions},
            allowed={"maximum": pixels},
            hint="Ask for fewer superpixels.",
        )


def grid(regions: int, size: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of the most nearly square grid of at most `regions` cells."""
    rows = min(max(1, round(math.sqrt(regions * size[0] / size[1]))), regions, size[0])
    return rows, min(max(1, regions // rows), size[1])


def of(item: Item, regions: int, compactness: float, ctx: Context, done: float) -> Generator[Step, None, Label]:
    """The superpixels of an item, or those that were found before: (H, W) int32, 0 to R - 1, each connected."""
    key = ("superpixels", item.key, regions, compactness)
    found: Label | None = ctx.recall(key)
    if found is None:
        found = yield from cut(item.image, regions, compactness, done)
        ctx.remember(key, found)
    return found


def cut(image: Pixels, regions: int, compactness: float, done: float = 0.0) -> Generator[Step, None, Label]:
    """(H, W, 3) uint8 -> (H, W) int32."""
    size = (image.shape[0], image.shape[1])
    check(regions, size)
    rows, columns = grid(regions, size)
    thin = max(1, min(-(-max(size) // LARGE), size[0] // rows, size[1] // columns))
    small = image[::thin, ::thin]
    height, width = small.shape[:2]
    r, c = np.arange(height), np.arange(width)
    place = np.stack(np.meshgrid(r, c, indexing="ij"), -1).astype(np.float32)
    step = math.sqrt(height * width / (rows * columns))
    points = np.concatenate([lab(small), place * np.float32(compactness / step)], -1).reshape(-1, 5)
    cell_r, cell_c = (r * rows // height)[:, None], (c * columns // width)[None]
    label = np.broadcast_to(cell_r * columns + cell_c, (height, width)).astype(np.int32).ravel()
    for _ in range(ROUNDS):
        count = np.bincount(label, minlength=rows * columns)
        sums = np.stack([np.bincount(label, points[:, k], rows * columns) for k in range(5)], 1)
        centre = (sums / np.maximum(count, 1)[:, None]).astype(np.float32)
        best = np.full(len(label), np.inf, dtype=np.float32)
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                near_r, near_c = np.clip(cell_r + dr, 0, rows - 1), np.clip(cell_c + dc, 0, columns - 1)
                near = np.broadcast_to(near_r * columns + near_c, (height, width)).ravel()
                away = ((points - centre[near]) ** 2).sum(1)
                away[count[near] == 0] = np.inf
                label = np.where(away < best, near, label).astype(np.int32)
                best = np.minimum(away, best)
        yield Step(done, "cutting the picture")
    joined = connected(label.reshape(height, width))
    yield Step(done, "cutting the picture")
    return joined.repeat(thin, 0).repeat(thin, 1)[: size[0], : size[1]].copy()


def connected(label: Label) -> Label:
    """Keeps of each region its largest connected part (four neighbours); the rest joins what it touches. Numbered from 0
    without gaps, in the order of their first pixels."""
    parts = _parts(label)
    names, first, size = np.unique(parts, return_index=True, return_counts=True)
    owner = label.ravel()[first]
    order = np.lexsort((names, -size, owner))  # of each region the largest part first
    main = np.zeros(len(names), dtype=bool)
    main[order[np.unique(owner[order], return_index=True)[1]]] = True
    found = np.where(main[np.searchsorted(names, parts)], label, -1)
    while (found < 0).any():  # one ring of pixels after the other
        before = found.copy()
        for axis, shift in ((0, 1), (0, -1), (1, 1), (1, -1)):
            near = np.roll(before, shift, axis)
            edge: list[Any] = [slice(None)] * 2
            edge[axis] = 0 if shift == 1 else -1
            near[tuple(edge)] = -1
            found = np.where((found < 0) & (near >= 0), near, found)
    kept, start, number = np.unique(found, return_index=True, return_inverse=True)
    rank = np.empty(len(kept), dtype=np.int32)
    rank[np.argsort(start)] = np.arange(len(kept), dtype=np.int32)
    return rank[number].reshape(label.shape)


def _parts(label: Label) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A number for each connected part of equal label: that of its first pixel. Numbers spread along rows and columns
    until none changes."""
    part = np.arange(label.size, dtype=np.int64).reshape(label.shape)
    while True:
        before = part
        for axis in (1, 0):
            part = _spread(part, label, axis)
        if np.array_equal(part, before):
            return part


def _spread(part: np.ndarray[Any, np.dtype[np.int64]], label: Label, axis: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The least number along each run of equal label in a line."""
    a, b = (part, label) if axis == 1 else (part.T, label.T)
    starts = np.ones(b.shape, dtype=bool)
    starts[:, 1:] = b[:, 1:] != b[:, :-1]
    flat = np.flatnonzero(starts.ravel())
    least = np.minimum.reduceat(np.ascontiguousarray(a).ravel(), flat)
    out = np.repeat(least, np.diff(np.append(flat, a.size))).reshape(a.shape)
    return np.ascontiguousarray(out if axis == 1 else out.T)


def lab(image: Pixels) -> Floats:
    """(..., 3) sRGB 0..255 -> CIELAB for daylight (D65): L 0..100, a and b about -100..100."""
    v = image.astype(np.float32) / 255
    linear = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]], dtype=np.float32)
    xyz = linear @ (to_xyz / np.array([[0.9505], [1.0], [1.089]], dtype=np.float32)).T
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1).astype(np.float32)
