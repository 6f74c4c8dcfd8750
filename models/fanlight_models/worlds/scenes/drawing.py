"""Pictures of scenes. The left and the right half hold one object each, in one of 33 places; everything is grey but the objects, and every pixel
has Gaussian noise of deviation 0.05, so that entropies are finite.

At side 16 an object is a patch of 6 x 6 with its corner at row 0..10 and column 0..2 of its half; at side 32 everything is twice as large. A
circle covers squared distances up to 7.6 from the centre, a cross the two middle rows and columns. Values are about -1 to 1, grey is -0.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.scenes.variants import COLOURS as COLOURS, SHAPES as SHAPES, World

SIDES = (16, 32)
SIGMA = 0.05
GREY = -0.9
RGB = np.array([(1, -0.8, -0.8), (-0.8, 0.9, -0.8), (-0.6, -0.4, 1), (1, 1, -0.8)], np.float32)
PLACES = [(row, column) for row in range(11) for column in range(3)]


@dataclass(frozen=True, eq=False)
class Scene:
    """image (3, side, side) float32 with noise; prompt; masks (2, side, side) bool of the left and the right object; row of the world's table;
    places: of the two objects, 0..32."""

    image: NDArray[np.float32]
    prompt: str
    masks: NDArray[np.bool_]
    row: int
    places: tuple[int, int]


def _shape(side: int, shape: int) -> NDArray[np.bool_]:
    """(6 s, 6 s) of a shape, s = side / 16."""
    s = side // 16
    at = (np.arange(6 * s) + 0.5) / s - 3  # in units of side 16
    if shape == 0:
        round_: NDArray[np.bool_] = at[:, None] ** 2 + at**2 <= 7.6
        return round_
    middle = np.abs(at) < 1
    return middle[:, None] | middle


@lru_cache
def halves(side: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """What a half can look like without noise: (264, 3, side, side / 2) in order of class (2 colour + shape), then place; and the object's mask,
    (264, side, side / 2). Errors: ValueError for another side than 16 or 32."""
    if side not in SIDES:
        raise ValueError(f"Scenes are drawn at a side of 16 or 32 pixels, not {side}.")
    s = side // 16
    means = np.full((8, len(PLACES), 3, side, side // 2), GREY, np.float32)
    masks = np.zeros((8, len(PLACES), side, side // 2), bool)
    for kind in range(8):
        drawn = _shape(side, kind % 2)
        for place, (row, column) in enumerate(PLACES):
            there = masks[kind, place, row * s : (row + 6) * s, column * s : (column + 6) * s]
            there |= drawn
            means[kind, place][:, masks[kind, place]] = RGB[kind // 2][:, None]
    return means.reshape(-1, 3, side, side // 2), masks.reshape(-1, side, side // 2)


def draw(world: World, seed: int, index: int, side: int = 16) -> Scene:
    """The scene `index` of a seed: the same bytes everywhere. About 0.1 ms."""
    chance = np.random.default_rng([seed, index])
    row = int(np.searchsorted(_bounds(world), chance.random()))
    left, right = (int(n) for n in chance.integers(0, len(PLACES), 2))
    means, masks = halves(side)
    shown = world.rows[row]
    components = (shown.left * len(PLACES) + left, shown.right * len(PLACES) + right)
    clean = np.concatenate([means[c] for c in components], 2)
    both = np.zeros((2, side, side), bool)
    both[0, :, : side // 2], both[1, :, side // 2 :] = (masks[c] for c in components)
    image = clean + SIGMA * chance.standard_normal(clean.shape).astype(np.float32)
    return Scene(image, shown.text, both, row, (left, right))


@lru_cache
def _bounds(world: World) -> NDArray[np.float64]:
    total = np.cumsum([row.weight for row in world.rows])
    total[-1] = np.inf
    return total
