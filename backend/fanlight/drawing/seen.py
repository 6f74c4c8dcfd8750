"""What somebody looked at on the page of words, told again on a share page: a marked region, a word alone. From the view of the share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from fanlight.artifact import Artifact
from fanlight.drawing.base import Table
from fanlight.drawing.information import SHOWN, Array, Read
from fanlight.drawing.number import digits, signed
from fanlight.errors import InvalidField

PACKED = re.compile(r"(\d{1,4})x(\d{1,4})((?:\.[0-9a-z]{1,5})+)")
"""Width x height, then how many places are out, in, out, ... from the upper left, in base 36: as the page's address says it."""
LARGEST = 1 << 20  # places


@dataclass(frozen=True)
class Seen:
    """Args: region: (h, w) bool. word: the number of a measured word that was looked at alone."""

    region: Array | None = None
    word: int | None = None

    @classmethod
    def of(cls, view: Mapping[str, Any]) -> Seen:
        """From the view of a share, which may hold more. Errors: InvalidField."""
        word = view.get("word")
        if word is not None and (isinstance(word, bool) or not isinstance(word, int) or word < 0):
            raise InvalidField("`word` of a view is the number of a measured word, from 0.", given=word)
        text = view.get("region")
        return cls(None if text is None else unpacked(text), word)

    def fits(self, artifact: Artifact) -> bool:
        """Whether there is a region, on the grid of this result."""
        return (
            artifact.kind == "words" and self.region is not None and self.region.shape == artifact.arrays["floor"].shape
        )


def unpacked(text: Any) -> Array:
    """(h, w) bool. Errors: InvalidField."""
    found = PACKED.fullmatch(text) if isinstance(text, str) else None
    if found is not None:
        width, height = int(found[1]), int(found[2])
        runs = [int(run, 36) for run in found[3][1:].split(".")]
        if 0 < width * height <= LARGEST and sum(runs) == width * height:
            return np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
    raise InvalidField(
        "`region` of a view is width x height of the maps, then how many places are out, in, out, ..., in base 36.",
        given=str(text)[:60],
        hint="For example 4x4.5.2.2.2.5: the four places in the middle.",
    )


def sentences(artifact: Artifact, seen: Seen) -> str:
    """What was looked at, in words; "" where nothing was, or it is not of this result."""
    said = []
    if artifact.kind == "words" and seen.word is not None and seen.word < len(artifact.meta["singles"]):
        value, error = Read(artifact).signed(artifact.meta["singles"][seen.word])
        name = artifact.meta["words"][seen.word][2]
        said.append(f"It was looked at for “{name}” alone: {signed(value)} ± {digits(error, 1)} nat.")
    if seen.fits(artifact):
        assert seen.region is not None
        count = int(seen.region.sum())
        said.append(
            f"A region of {count:,} of {seen.region.size:,} places was marked: {digits(100 * count / seen.region.size, 2)} % of the picture."
        )
    return " ".join(said)


def inside(artifact: Artifact, seen: Seen) -> Table | None:
    """What each word says in the region. The error of a sum is at most the sum of the errors, because all places share their noise."""
    if not seen.fits(artifact):
        return None
    read, region = Read(artifact), seen.region
    maps = [(w[2], read.map(m), read.error(m)) for w, m in zip(read.meta["words"], read.meta["singles"], strict=True)]
    maps += [(read.titles[n], read.maps[n], read.errors[n]) for n in read.maps if n not in SHOWN[:2]]
    rows = []
    for title, values, errors in maps:
        here, all_of_it = float(values[region].sum()), float(values.sum())
        share = f"{100 * here / all_of_it:.0f} %" if all_of_it > 0 and here >= 0 else ""
        rows.append((title, float(f"{here:.4g}"), float(f"{errors[region].sum():.4g}"), share))
    return Table(("in the region", "nat inside", "± at most", "of all of it"), tuple(rows))


def marked(picture: Image.Image, region: Array) -> Image.Image:
    """The picture, dimmed outside the region, with a border that is light beside dark."""
    width, height = picture.size
    rows, columns = (np.arange(n) * m // n for n, m in zip((height, width), region.shape, strict=True))
    here = region[rows][:, columns]
    pixels = np.asarray(picture.convert("RGB"), np.float64)
    drawn = np.where(here[..., None], pixels, 0.55 * pixels)
    for colour, wide in (((20, 22, 26), 2), ((255, 255, 255), 1)):
        edge = np.zeros_like(here)
        for axis in (0, 1):
            for step in range(-wide, wide + 1):
                edge |= np.roll(here, step, axis) != here
        edge[[0, -1]] |= here[[0, -1]]
        edge[:, [0, -1]] |= here[:, [0, -1]]
        drawn[edge] = colour
    return Image.fromarray(drawn.round().astype(np.uint8))
