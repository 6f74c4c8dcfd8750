"""What every loader gives, and how tables are read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
TRAIN = {"train": True, "1": True, "test": False, "0": False, "val": False, "validation": False}


class BadData(ValueError):
    """Files that do not fit their layout; the message is a sentence."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """n cases. concepts (n, K) in {0, 1}; labels (n,); names of concepts (`group::value` where values exclude each other) and classes; train (n,):
    which are for training. paths: their image files, or x (n, p): their features. rule: how the concept labels came about, for the card."""

    concepts: Floats
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    classes: tuple[str, ...]
    train: Flags
    paths: tuple[Path, ...] = ()
    x: Floats | None = None
    columns: tuple[str, ...] = ()
    rule: str = ""

    def keeping(self, concepts: Sequence[int]) -> Labelled:
        """Some of the concepts. Errors: BadData where none is left."""
        if not len(concepts):
            raise BadData("No concept is left after the selection.")
        return replace(self, concepts=self.concepts[:, list(concepts)], names=tuple(self.names[i] for i in concepts))


def rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV in UTF-8. Errors: BadData for a missing file, no rows, a doubled column, or a row of another length."""
    if not path.is_file():
        raise BadData(f"There is no file {path.name} in “{path.parent.name}”.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            every = [row for row in csv.reader(file) if row]
    except UnicodeDecodeError as e:
        raise BadData(f"{path.name} is not UTF-8 text.") from e
    if len(every) < 2:
        raise BadData(f"{path.name} has no rows below its header.")
    header = [name.strip() for name in every[0]]
    twice = [name for i, name in enumerate(header) if name in header[:i]]
    if twice:
        raise BadData(f"{path.name} has the column “{twice[0]}” twice.")
    for number, row in enumerate(every[1:], 2):
        if len(row) != len(header):
            raise BadData(f"Row {number} of {path.name} has {len(row)} fields; the header has {len(header)}.")
    return header, every[1:]


def column(path: Path, header: Sequence[str], name: str) -> int:
    """The place of a column. Errors: BadData names those there are."""
    if name not in header:
        shown = ", ".join(header[:8]) + (", ..." if len(header) > 8 else "")
        raise BadData(f"{path.name} has no column “{name}”. Columns: {shown}.")
    return list(header).index(name)


def numbers(path: Path, header: Sequence[str], table: Sequence[Sequence[str]], places: Sequence[int]) -> Floats:
    """(rows, places): the fields as numbers, NaN where empty. Errors: BadData names row and column of what is no number."""
    out = np.full((len(table), len(places)), np.nan)
    for i, row in enumerate(table):
        for j, place in enumerate(places):
            text = row[place].strip()
            if not text:
                continue
            try:
                out[i, j] = float(text)
            except ValueError:
                raise BadData(
                    f"Row {i + 2} of {path.name} has “{text}” as {header[place]}; a number is expected."
                ) from None
            if not np.isfinite(out[i, j]):
                raise BadData(f"Row {i + 2} of {path.name} has {text} as {header[place]}; a finite number is expected.")
    return out


def coded(values: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Texts -> numbers and the sorted names they stand for. Errors: BadData for fewer than two classes."""
    classes = tuple(sorted(set(values)))
    if len(classes) < 2:
        raise BadData(f"The label has {len(classes)} value; at least two classes are needed.")
    place = {name: i for i, name in enumerate(classes)}
    return np.array([place[v] for v in values], np.int64), classes


def splits(path: Path, values: Sequence[str]) -> Flags:
    """Words of a split column -> for training or not. Errors: BadData."""
    strange = [(i, v) for i, v in enumerate(values) if v.strip().lower() not in TRAIN]
    if strange:
        raise BadData(
            f"Row {strange[0][0] + 2} of {path.name} has the split “{strange[0][1]}”. Allowed: {', '.join(TRAIN)}."
        )
    return np.array([TRAIN[v.strip().lower()] for v in values], bool)


def divided(labels: NDArray[np.int64], share: float, seed: int) -> Flags:
    """A split where the data has none: `share` of each class for training, at least one case."""
    chance, out = np.random.default_rng(seed), np.zeros(len(labels), bool)
    for c in np.unique(labels):
        members = chance.permutation(np.flatnonzero(labels == c))
        out[members[: max(1, round(share * len(members)))]] = True
    return out


def binary(
    path: Path, values: Floats, names: Sequence[str], labels: NDArray[np.int64], threshold: float, missing: str
) -> Floats:
    """Numbers between 0 and 1, or up to 100 for per cent, -> 0 or 1 from `threshold` on (a share of the range).

    missing: `refuse` an empty field, or `class`: what most cases of its class say (0 where none says anything).
    Errors: BadData."""
    if missing not in ("refuse", "class"):
        raise BadData(f"Empty fields are dealt with by “refuse” or “class”, not “{missing}”.")
    top = 100.0 if np.nanmax(values, initial=0.0) > 1 else 1.0
    wrong = np.argwhere((values < 0) | (values > top))
    if len(wrong):
        i, j = wrong[0]
        raise BadData(
            f"Row {i + 2} of {path.name} has {values[i, j]:g} for {names[j]}; 0 to 1, or 0 to 100 per cent, is expected."
        )
    empty = np.isnan(values)
    if empty.any() and missing == "refuse":
        i, j = np.argwhere(empty)[0]
        raise BadData(
            f"Row {i + 2} of {path.name} says nothing about {names[j]}. Fill it in, or take what most cases of its class say (missing=“class”)."
        )
    said = np.where(empty, 0.0, values >= threshold * top)
    if empty.any():
        for c in np.unique(labels):
            members = labels == c
            count = (~empty[members]).sum(0)
            share = np.divide(said[members].sum(0), count, out=np.zeros(said.shape[1]), where=count > 0)
            said[members] = np.where(empty[members], share >= 0.5, said[members])
    return said.astype(np.float64)
