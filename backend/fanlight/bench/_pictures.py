"""Real photographs in any number, no two alike: cuts of those that scikit-image ships."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image

NAMES = ("astronaut", "coffee", "chelsea", "rocket")
SIZE = (375, 500)
"""(height, width) of a picture, that of a typical photograph of ImageNet."""


def photographs(seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """(file name, JPEG) without end: a random part of a photograph, at SIZE; the same for the same seed."""
    from skimage import data

    whole = [Image.fromarray(np.asarray(getattr(data, name)())) for name in NAMES]
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        for name, image in zip(NAMES, whole, strict=True):
            scale = rng.uniform(0.6, 1.0) * min(image.width / SIZE[1], image.height / SIZE[0])
            w, h = scale * SIZE[1], scale * SIZE[0]
            x, y = rng.uniform(0, image.width - w), rng.uniform(0, image.height - h)
            out = io.BytesIO()
            image.resize(SIZE[::-1], Image.Resampling.BICUBIC, box=(x, y, x + w, y + h)).save(out, "JPEG", quality=92)
            yield f"{name}-{seed}-{number}.jpg", out.getvalue()
            number += 1
