"""Canonical pictures: (h, w, 3) uint8, sRGB, upright. Everything else that a file held is gone.

Decoded once (`decode`), named by their digest, stored as PNG (`encode`), read back (`load`), edited and cut.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Resampling

from fanlight.decoding import Picture as Picture, Pixels as Pixels, decode as decode, to_pixels
from fanlight.errors import InvalidField

GREY = 128


def canonical_digest(pixels: Pixels) -> str:
    """sha256 over kind, width, height and pixels: an input's id, the same for the same picture in another file."""
    height, width, _ = pixels.shape
    sha = hashlib.sha256(f"fanlight image rgb8 {width} {height}\n".encode())
    sha.update(np.ascontiguousarray(pixels).data)
    return sha.hexdigest()


def encode(pixels: Pixels) -> bytes:
    """(h, w, 3) -> PNG. Level 1: under a third of the time of the default level for a third more bytes."""
    return png(Image.fromarray(np.ascontiguousarray(pixels)))


def png(image: Image.Image, level: int = 1) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=level)
    return out.getvalue()


def jpeg(image: Image.Image) -> bytes:
    """For looking at: a fortieth of the time of a PNG and a fifth of its bytes; no value is read off it."""
    out = io.BytesIO()
    image.save(out, "JPEG", quality=92)
    return out.getvalue()


def webp(image: Image.Image) -> bytes:
    """For small pictures in numbers: a tenth of the bytes of a PNG."""
    out = io.BytesIO()
    image.save(out, "WEBP", quality=80, method=2)
    return out.getvalue()


def load(blob: bytes) -> Pixels:
    """(h, w, 3) from the bytes that `encode` made; raises ValueError for anything else."""
    with Image.open(io.BytesIO(blob), formats=("PNG",)) as image:
        if image.mode != "RGB":
            raise ValueError(f"canonical pictures are RGB, this one is {image.mode}")
        return to_pixels(image)


def crop_resize(pixels: Pixels, box: Sequence[float], size: tuple[int, int]) -> Image.Image:
    """The part `box` (x0, y0, x1, y1 in pixels, maybe fractional, clipped to the picture) at `size` (height, width)."""
    height, width, _ = pixels.shape
    x0, x1 = (float(np.clip(v, 0, width)) for v in (box[0], box[2]))
    y0, y1 = (float(np.clip(v, 0, height)) for v in (box[1], box[3]))
    if x1 <= x0 or y1 <= y0:
        raise ValueError(f"box {tuple(box)} has no part in a picture of {width} x {height}")
    # Of a much larger picture every k-th pixel is enough: at least three samples a side are left for each pixel made.
    k = max(1, int(min((x1 - x0) / size[1], (y1 - y0) / size[0]) / 3))
    left, top = int(x0) // k, int(y0) // k
    part = Image.fromarray(
        np.ascontiguousarray(pixels[top * k : int(np.ceil(y1)) : k, left * k : int(np.ceil(x1)) : k])
    )
    within = (x0 / k - left, y0 / k - top, min(x1 / k - left, part.width), min(y1 / k - top, part.height))
    return part.resize(size[::-1], Resampling.BICUBIC, box=within, reducing_gap=2.0)


def thumbnail(pixels: Pixels, size: int) -> bytes:
    """PNG whose longer side is at most `size`; never enlarged."""
    height, width, _ = pixels.shape
    scale = min(1.0, size / max(height, width))
    fitted = (max(1, round(height * scale)), max(1, round(width * scale)))
    return png(crop_resize(pixels, (0, 0, width, height), fitted))


def of_picture(edit: Mapping[str, Any]) -> bool:
    """Whether an edit changes the picture; the others change what was found about it."""
    return "mask_region" in edit


def apply_edits(pixels: Pixels, edits: Sequence[Mapping[str, Any]]) -> Pixels:
    """A copy with `edits` applied in order.

    `{"mask_region": [x0, y0, x1, y1]}` fills that region with mid grey; whole pixels, x1 and y1 exclusive.

    Raises:
        InvalidField: an edit that pictures do not have, or a region that is empty or not inside the picture.
    """
    edited = pixels.copy()
    for number, edit in enumerate(edits):
        if set(edit) != {"mask_region"}:
            raise InvalidField(
                f"Edit {number} is not one that a picture understands.",
                given=dict(edit),
                allowed=["mask_region"],
                hint='{"mask_region": [x0, y0, x1, y1]}',
            )
        x0, y0, x1, y1 = _region(edit["mask_region"], number, pixels)
        edited[y0:y1, x0:x1] = GREY
    return edited


def _region(value: Any, number: int, pixels: Pixels) -> tuple[int, int, int, int]:
    height, width, _ = pixels.shape
    if isinstance(value, (list, tuple)) and len(value) == 4 and all(type(v) is int for v in value):
        x0, y0, x1, y1 = value
        if 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height:
            return x0, y0, x1, y1
    raise InvalidField(
        f"Edit {number}: a region is x0 < x1, y0 < y1 in whole pixels inside {width} x {height}.",
        given=value,
        allowed={"x": [0, width], "y": [0, height]},
        hint="Mark a region with some area inside the picture.",
    )
