"""CUB-200-2011 (Wah, Branson, Welinder, Perona & Belongie, Caltech 2011) in its official layout: photographs of birds with attributes, how certain
each annotator was, parts and boxes. It is for research, not for commerce, and not part of Fanlight.

    images.txt  classes.txt  image_class_labels.txt  train_test_split.txt  bounding_boxes.txt
    parts/parts.txt  parts/part_locs.txt
    attributes/certainties.txt  attributes/image_attribute_labels.txt
    attributes.txt          beside the folder, in it, or in attributes/: the archive has it beside
    images/<class>/<file>.jpg
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fanlight_models.concepts.data.base import BadData, Flags, Floats, Labelled

NOT_VISIBLE = 1
VOTES = ("majority", "image")
LEAST = 10  # classes that an attribute must be present in, in Koh et al. 2020, who are left with 112 of 312


@dataclass(frozen=True, eq=False)
class Cub:
    """n photographs. labels (n,) from 0; train (n,); present (n, A) and certainty (n, A), 1 not visible to 4 definitely, 0 where nobody said
    anything; boxes (n, 4) as x, y, width, height in pixels; points (n, P, 2) of the parts in pixels, NaN where hidden."""

    paths: tuple[Path, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    train: Flags
    attributes: tuple[str, ...]
    certainties: tuple[str, ...]
    present: Flags
    certainty: NDArray[np.uint8]
    boxes: Floats
    parts: tuple[str, ...]
    points: Floats

    def labelled(self, votes: str = "majority", least: int = LEAST) -> Labelled:
        """Concept labels.

        majority: an attribute is present in all photographs of a class if it is in at least half of its training photographs in which it is visible
        (so that the labels say what the species looks like, not what the photograph shows); image: each photograph's own annotation, noisy.
        least: attributes that the majority gives to fewer classes are left out, in both.

        Errors: BadData for unknown votes, or where nothing is left."""
        if votes not in VOTES:
            raise BadData(f"Concept labels are by “majority” or by “image”, not by “{votes}”.")
        counted = self.train[:, None] & (self.certainty > NOT_VISIBLE)
        share = np.zeros((len(self.classes), len(self.attributes)))
        for c in range(len(self.classes)):
            rows = self.labels == c
            n = counted[rows].sum(0)
            yes = (counted[rows] & self.present[rows]).sum(0)
            share[c] = np.divide(yes, n, out=np.zeros(len(n)), where=n > 0)
        table = share >= 0.5
        kept = np.flatnonzero(table.sum(0) >= least)
        values = table[self.labels] if votes == "majority" else self.present
        rule = (
            "by majority of the training photographs of a species: every photograph of a species carries the same labels"
            if votes == "majority"
            else "as annotated for each photograph"
        )
        return Labelled(
            values.astype(np.float64), self.labels, self.attributes, self.classes, self.train, self.paths, rule=rule
        ).keeping(kept.tolist())  # fmt: skip


def load(folder: Path) -> Cub:
    """Reads all of it, some seconds for the 3.7 million annotations. Errors: BadData names the file, and the line where it can."""
    names = _numbered(folder / "images.txt")
    n = len(names)
    classes = _numbered(folder / "classes.txt")
    labels = np.zeros(n, np.int64)
    for image, value in _each(folder / "image_class_labels.txt", n):
        labels[image] = _within(folder / "image_class_labels.txt", value[0], len(classes)) - 1
    train = np.zeros(n, bool)
    for image, value in _each(folder / "train_test_split.txt", n):
        train[image] = value[0] == "1"
    boxes = np.full((n, 4), np.nan)
    for image, value in _each(folder / "bounding_boxes.txt", n):
        boxes[image] = [float(v) for v in value[:4]]
    parts = _numbered(folder / "parts" / "parts.txt")
    points = np.full((n, len(parts), 2), np.nan)
    for image, value in _each(folder / "parts" / "part_locs.txt", n, once=False):
        if value[3] == "1":
            points[image, _within(folder / "parts" / "part_locs.txt", value[0], len(parts)) - 1] = [
                float(v) for v in value[1:3]
            ]
    attributes = _numbered(_attributes(folder))
    certainties = _numbered(folder / "attributes" / "certainties.txt")
    present, certainty = np.zeros((n, len(attributes)), bool), np.zeros((n, len(attributes)), np.uint8)
    place = folder / "attributes" / "image_attribute_labels.txt"
    for image, value in _each(place, n, once=False):
        attribute = _within(place, value[0], len(attributes)) - 1
        present[image, attribute] = value[1] == "1"
        certainty[image, attribute] = _within(place, value[2], len(certainties))
    paths = tuple(folder / "images" / name for name in names)
    lost = [p for p in paths if not p.is_file()]
    if lost:
        raise BadData(
            f"{len(lost)} of {n} photographs are missing, the first is images/{lost[0].parent.name}/{lost[0].name}."
        )
    if not train.any():
        raise BadData("train_test_split.txt names no photograph for training.")
    return Cub(paths, labels, classes, train, attributes, certainties, present, certainty, boxes, parts, points)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    if not path.is_file():
        raise BadData(
            f"There is no file {path.name} in “{path.parent.name}”; the official layout of CUB-200-2011 has it."
        )
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if fields:
                yield number, fields


def _numbered(path: Path) -> tuple[str, ...]:
    """Names by their number from 1 on, without a gap."""
    found = [(number, fields) for number, fields in _lines(path)]
    for i, (number, fields) in enumerate(found, 1):
        if len(fields) < 2 or fields[0] != str(i):
            raise BadData(
                f"Line {number} of {path.name} is “{' '.join(fields)[:60]}”; number {i} and a name are expected."
            )
    if not found:
        raise BadData(f"{path.name} is empty.")
    return tuple(" ".join(fields[1:]) for _, fields in found)


WIDTHS = {
    "image_class_labels.txt": 2,
    "train_test_split.txt": 2,
    "bounding_boxes.txt": 5,
    "part_locs.txt": 5,
    "image_attribute_labels.txt": 4,
}
"""Fields that are read of a line; a few lines of the published annotations have more."""


def _each(path: Path, images: int, once: bool = True) -> Iterator[tuple[int, list[str]]]:
    """(image from 0, the other fields) of each line; once: every image must have its line."""
    seen = np.zeros(images, bool)
    for number, fields in _lines(path):
        if len(fields) < WIDTHS[path.name]:
            raise BadData(f"Line {number} of {path.name} has {len(fields)} fields; {WIDTHS[path.name]} are expected.")
        try:
            image = int(fields[0])
            if path.name == "bounding_boxes.txt" or path.name == "part_locs.txt":
                [float(v) for v in fields[1:]]
        except ValueError:
            raise BadData(f"Line {number} of {path.name} is “{' '.join(fields)[:60]}”; numbers are expected.") from None
        if not 1 <= image <= images:
            raise BadData(f"Line {number} of {path.name} is about photograph {image}; there are {images}.")
        seen[image - 1] = True
        yield image - 1, fields[1:]
    if once and not seen.all():
        raise BadData(f"{path.name} says nothing about photograph {int(np.argmin(seen)) + 1}.")


def _within(path: Path, text: str, most: int) -> int:
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise BadData(f"{path.name} has “{text}” where a number from 1 to {most} is expected.")
    return int(text)


def _attributes(folder: Path) -> Path:
    places = [folder / "attributes" / "attributes.txt", folder / "attributes.txt", folder.parent / "attributes.txt"]
    found = next((p for p in places if p.is_file()), None)
    if found is None:
        raise BadData(f"There is no file attributes.txt in “{folder.name}”, in its folder attributes, or beside it.")
    return found
