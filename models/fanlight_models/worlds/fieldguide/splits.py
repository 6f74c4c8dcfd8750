"""Train, validation and test: which scenes they are, and as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide.drawing import SIZE, draw
from fanlight_models.worlds.fieldguide.scenes import Scene, scene

SPLITS = {"train": 6000, "validation": 1200, "test": 1200}
_FIRST = {"train": 0, "validation": 1 << 24, "test": 2 << 24}


@dataclass(frozen=True, eq=False)
class Arrays:
    """images (n, size, size, 3) uint8, species (n,), concepts (n, concepts) and seen (n, groups) as booleans, values (n, groups)."""

    images: NDArray[np.uint8]
    species: NDArray[np.int64]
    concepts: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    values: NDArray[np.int64]


def split(name: str, count: int | None = None, *, seed: int = 0, biased: bool = False) -> list[Scene]:
    """The first `count` scenes of a split (default: all). Biased: in train and validation the background tells the family 19 times in 20; the
    test split stays fair, so that a model that learned the background is found out. The birds are the same either way. Errors: ValueError."""
    if name not in SPLITS:
        raise ValueError(f"No split is called “{name}”. Splits: {', '.join(SPLITS)}.")
    most = _FIRST["validation"]
    n = SPLITS[name] if count is None else count
    if not 0 <= n <= most:
        raise ValueError(f"A split has 0 to {most} scenes, not {n}.")
    return [scene(seed, _FIRST[name] + i, biased=biased and name != "test") for i in range(n)]


def arrays(scenes: Sequence[Scene], size: int = SIZE, workers: int = 1) -> Arrays:
    """Draws scenes; `workers`: processes that share the drawing. About 5 ms of one core a picture of 112."""
    if workers > 1:
        with get_context("spawn").Pool(workers) as pool:
            drawn = pool.map(partial(_one, size=size), scenes, chunksize=64)
    else:
        drawn = [_one(s, size) for s in scenes]
    return Arrays(
        np.array([image for image, _ in drawn], np.uint8).reshape(-1, size, size, 3),
        np.array([s.species for s in scenes], np.int64),
        _rows(s.concepts() for s in scenes),
        _rows(seen for _, seen in drawn),
        np.array([s.values for s in scenes], np.int64),
    )


def _one(scene: Scene, size: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    drawing = draw(scene, size)
    return drawing.image, drawing.seen()


def _rows(rows: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    return np.array(list(rows), bool)
