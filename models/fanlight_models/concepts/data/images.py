"""A folder of images and a CSV of their concepts. One row an image, or one row a class, whose images all share its concepts.

path,label,split,bill::hooked,bill::flat      split may be left out; concepts are 0, 1 or between, or per cent
a/1.jpg,duck,train,0,1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fanlight_models.concepts.data.base import BadData, Labelled, binary, coded, column, divided, numbers, rows, splits

SPECIAL = ("path", "label", "split", "species", "class")


def load(
    folder: Path,
    table: str = "concepts.csv",
    *,
    classes: str | None = None,
    images: str = ".",
    label: str = "label",
    key: str | None = None,
    threshold: float = 0.5,
    missing: str = "refuse",
    share: float = 0.7,
    seed: int = 0,
) -> Labelled:
    """The data set of a folder.

    Args:
        table: CSV with a column `path`, relative to folder/images, and the label; with concepts if `classes` is None.
        classes: CSV with one row a class: its name in the column `key` (default: `label`), and the concepts in all others.
        threshold: from which share of the range on a concept is there. missing: see `base.binary`.
        share, seed: of the images that are for training, where there is no column `split`.

    Errors: BadData names file and row."""
    path = folder / table
    header, lines = rows(path)
    at, named = column(path, header, "path"), column(path, header, label)
    labels, names = coded([row[named].strip() for row in lines])
    files = _files(path, folder / images, [row[at].strip() for row in lines])
    train = (
        splits(path, [row[header.index("split")] for row in lines])
        if "split" in header
        else divided(labels, share, seed)
    )
    if classes is None:
        places = [i for i, name in enumerate(header) if name not in {*SPECIAL, label}]
        _some(path, places)
        concepts = [header[i] for i in places]
        values = binary(path, numbers(path, header, lines, places), concepts, labels, threshold, missing)
        rule = f"per image, from {threshold:g} on"
    else:
        other = folder / classes
        header, lines = rows(other)
        own = column(other, header, key or label)
        places = [i for i in range(len(header)) if i != own]
        _some(other, places)
        concepts = [header[i] for i in places]
        table_ = binary(
            other, numbers(other, header, lines, places), concepts, np.arange(len(lines)), threshold, missing
        )
        where = {row[own].strip(): i for i, row in enumerate(lines)}
        lost = [name for name in names if name not in where]
        if lost:
            raise BadData(f"{other.name} has no row for the class “{lost[0]}”.")
        values = table_[[where[names[c]] for c in labels]]
        rule = f"per class, from {threshold:g} on: every image of a class carries the same labels"
    return Labelled(values, labels, tuple(concepts), names, train, files, rule=rule)


def _some(path: Path, places: Sequence[int]) -> None:
    if not places:
        raise BadData(f"{path.name} has no columns with concepts.")


def _files(path: Path, folder: Path, given: Sequence[str]) -> tuple[Path, ...]:
    root, out = folder.resolve(), []
    for number, name in enumerate(given, 2):
        file = (root / name).resolve()
        if not file.is_relative_to(root):
            raise BadData(f"Row {number} of {path.name} names “{name}”, which lies outside the folder.")
        if not file.is_file():
            raise BadData(f"Row {number} of {path.name} names “{name}”, and there is no such file.")
        out.append(file)
    return tuple(out)
