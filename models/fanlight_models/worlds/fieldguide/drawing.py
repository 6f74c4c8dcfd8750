"""Pictures of scenes, with the exact share of each part in each pixel.

Everything but the background is filled at four times the size, without smoothing, into one canvas of indices; each index stands for a colour and
for an owner (a part, the perch, an occluder). Averaging the colours gives the picture, counting the owners gives the masks, from one drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from fanlight_models.worlds.fieldguide import anatomy, setting
from fanlight_models.worlds.fieldguide.anatomy import Colour, Points
from fanlight_models.worlds.fieldguide.scenes import EXTENT, Scene
from fanlight_models.worlds.fieldguide.setting import Fill
from fanlight_models.worlds.fieldguide.table import CONCEPTS, GROUPS, PARTS

SIZE = 112
FINE = 4  # subsamples a side
OTHERS = ("background", "perch", "object", "occluder")
OWNERS = (*PARTS, *OTHERS)
VISIBLE = 0.10  # share of a part that must be unhidden for it to count as visible, and
LEAST = 3.0  # how much of it, in pixels of a picture of 112
TINTS = {"noon": (256, 256, 256), "evening": (268, 252, 228), "overcast": (242, 250, 260)}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A picture and what is where in it.

    image: (size, size, 3) uint8. `indices` and `unhidden`: the canvas with and without occluders; `owner`: what each index stands for, (256,).
    """

    image: NDArray[np.uint8]
    indices: Image.Image
    unhidden: Image.Image
    owner: NDArray[np.uint8]

    @cached_property
    def canvas(self) -> NDArray[np.uint8]:
        """(4 size, 4 size): the owner of each subsample, as a place in `OWNERS`."""
        return np.asarray(self.owner[np.asarray(self.indices)], np.uint8)

    def _areas(self, canvas: Image.Image) -> NDArray[np.int64]:
        return np.bincount(self.owner, canvas.histogram(), len(OWNERS))[: len(PARTS)].astype(np.int64)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """(18, size, size): the part of each pixel that each owner has; sums to 1 over owners."""
        n = self.image.shape[0]
        counts = np.zeros(len(OWNERS) * n * n, np.uint8)
        pixel = np.arange(n * n)
        for subsample in self.canvas.reshape(n, FINE, n, FINE).transpose(1, 3, 0, 2).reshape(FINE**2, n * n):
            counts[subsample * np.int64(n * n) + pixel] += 1
        return counts.reshape(len(OWNERS), n, n) / FINE**2

    @cached_property
    def bird(self) -> NDArray[np.bool_]:
        """(size, size): pixels of which at least half is bird."""
        whole: NDArray[np.bool_] = self.shares[: len(PARTS)].sum(0) >= 0.5
        return whole

    @cached_property
    def masks(self) -> NDArray[np.bool_]:
        """(14, size, size): the visible pixels of each part. Each pixel of the bird belongs to the part that has most of it."""
        owner = self.shares[: len(PARTS)].argmax(0)
        return np.asarray((owner == np.arange(len(PARTS))[:, None, None]) & self.bird, bool)

    @cached_property
    def visible(self) -> NDArray[np.bool_]:
        """(14,): whether enough of each part is unhidden."""
        seen, behind = self._areas(self.indices), self._areas(self.unhidden)
        least = LEAST * (self.image.shape[0] / SIZE) ** 2 * FINE**2
        return np.asarray((seen >= VISIBLE * behind) & (seen >= least), bool)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """(14, 2): key point (x, y) of each part in pixels: of its visible pixels the one nearest to their mean; NaN where there is none."""
        out = np.full((len(PARTS), 2), np.nan)
        for i, mask in enumerate(self.masks):
            if mask.any():
                found = np.argwhere(mask)
                out[i] = found[((found - found.mean(0)) ** 2).sum(1).argmin()][::-1]
        return out

    def seen(self) -> NDArray[np.bool_]:
        """(groups,): whether the value of each group can be seen. Of what is absent: whether the place where it would be can be seen."""
        flags = np.empty(len(GROUPS), bool)
        for i, g in enumerate(GROUPS):
            where = g.parts + ((g.bearer,) if g.bearer else ())
            flags[i] = any(self.visible[PARTS.index(p)] for p in where) if where else self.visible.any()
        return flags

    def seen_concepts(self) -> NDArray[np.bool_]:
        """(concepts,): `seen`, for each concept of the table."""
        return np.asarray(self.seen()[np.array([[g.name for g in GROUPS].index(name) for name, _ in CONCEPTS])], bool)


class Plate:
    """A scene made ready to be drawn many times with some of its parts: surroundings and geometry are computed once."""

    def __init__(self, scene: Scene, size: int = SIZE) -> None:
        if not 16 <= size <= 2048:
            raise ValueError(f"A picture has 16 to 2048 pixels a side, not {size}.")
        self.scene, self.size = scene, size
        self._palette: list[Colour] = [(0, 0, 0)]
        self._owner: list[int] = [OWNERS.index("background")]
        self._known: dict[tuple[Colour, int], int] = {}
        self._k = size * FINE / EXTENT
        self._behind = self._canvas()
        self._surround("perch", self._behind, partial(setting.perch, scene))
        for item in scene.distractors:
            self._surround("object", self._behind, partial(setting.thing, item))
        self._bird = self._polygons()
        self._front: list[tuple[int, list[int]]] = []
        for item in scene.occluders:
            setting.occluder(item, lambda colour, points: self._front.append(self._polygon("occluder", colour, points)))
        self._ground = setting.background(scene, size).astype(np.int32)
        self._shade = _shade(scene, size)

    def draw(self, removed: frozenset[str] | None = None) -> Drawing:
        """The picture; `removed`: parts to leave out, by default those of the scene."""
        without = self.scene.removed if removed is None else removed
        canvas = self._behind.copy()
        pen = ImageDraw.Draw(canvas)
        for part, index, points in self._bird:
            if part not in without:
                pen.polygon(points, fill=index)
        unhidden = canvas.copy() if self._front else canvas
        for index, points in self._front:
            pen.polygon(points, fill=index)
        owner = np.full(256, OWNERS.index("background"), np.uint8)
        owner[: len(self._owner)] = self._owner
        return Drawing(self._develop(canvas, owner), canvas, unhidden, owner)

    def _develop(self, canvas: Image.Image, owner: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Indices -> colours, in whole numbers throughout."""
        empty = np.asarray(canvas.point([255] + [0] * 255).reduce(FINE), np.int32)[..., None]
        bird = np.asarray(canvas.point(np.where(owner < len(PARTS), 255, 0).tolist()).reduce(FINE), np.int32)[..., None]
        coloured = canvas.copy()
        coloured.putpalette([c for colour in self._palette for c in colour])
        rgb = np.asarray(coloured.convert("RGB").reduce(FINE), np.int32)
        rgb = (rgb * 255 + self._ground * empty + 127) // 255
        rgb = rgb * (128 * 255 + (self._shade - 128) * bird) // (128 * 255)
        rgb = rgb * np.array(TINTS[self.scene.light], np.int32) >> 8
        return np.minimum(rgb, 255).astype(np.uint8)

    def _canvas(self) -> Image.Image:
        return Image.new("L", (self.size * FINE, self.size * FINE), 0)

    def _surround(self, owner: str, canvas: Image.Image, paint: Callable[[Fill], None]) -> None:
        pen = ImageDraw.Draw(canvas)

        def fill(colour: Colour, points: Points) -> None:
            index, flat = self._polygon(owner, colour, points)
            pen.polygon(flat, fill=index)

        paint(fill)

    def _polygon(self, owner: str, colour: Colour, points: Points) -> tuple[int, list[int]]:
        return self._index(colour, owner), np.floor(points * self._k + 0.5).astype(np.int64).ravel().tolist()

    def _polygons(self) -> list[tuple[str, int, list[int]]]:
        marks = self.scene.marks(every=True)
        lengths = [len(m.points) for m in marks]
        standing = np.repeat([m.standing for m in marks], lengths)
        every = self.scene.to_picture(np.concatenate([m.points for m in marks]), standing)
        flat = np.floor(every * self._k + 0.5).astype(np.int64)
        ends = np.cumsum(lengths)
        return [
            (m.part, self._index(m.colour, m.part), flat[end - n : end].ravel().tolist())
            for m, n, end in zip(marks, lengths, ends, strict=True)
        ]

    def _index(self, colour: Colour, owner: str) -> int:
        key = (colour, OWNERS.index(owner))
        if key not in self._known:
            self._known[key] = len(self._palette)
            self._palette.append(colour)
            self._owner.append(key[1])
        return self._known[key]


def draw(scene: Scene, size: int = SIZE) -> Drawing:
    """The picture of a scene at `size` x `size` pixels, with its masks. Errors: ValueError for a size out of 16 .. 2048."""
    return Plate(scene, size).draw()


def _shade(scene: Scene, size: int) -> NDArray[np.int32]:
    """(size, size, 1): light on the bird, 128 where it changes nothing. It depends on no part, so that it stays when one goes."""
    canvas = Image.new("L", (size, size), 128)
    pen = ImageDraw.Draw(canvas)
    bands = anatomy.rounding(scene.value("build"))
    every = np.floor(scene.to_picture(np.concatenate([p for _, p in bands])) * (size / EXTENT) + 0.5).astype(np.int64)
    end = 0
    for level, points in bands:
        pen.polygon(every[end : end + len(points)].ravel().tolist(), fill=level)
        end += len(points)
    return np.asarray(canvas.filter(ImageFilter.BoxBlur(max(1, size // 56))), np.int32)[..., None]
