"""Where in the picture: nine named places, what each carries, and the sentence that a person would say."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanlight.drawing.base import Table
from fanlight.drawing.number import percent, shares

Array = np.ndarray[Any, np.dtype[Any]]

ROWS, COLUMNS = ("upper", "", "lower"), ("left", "", "right")
NAMES = ("upper left", "top", "upper right", "left", "middle", "right", "lower left", "bottom", "lower right")
HALF = 0.5  # three of nine places that carry less than this do not stand out: an even map puts a third there
AGAINST = 0.1  # evidence against is worth a word from this share of the whole


def cells(shape: tuple[int, int]) -> list[tuple[slice, slice]]:
    """The nine places of an (H, W) map in the order of NAMES; of a map thinner than three pixels some are empty."""
    edges = [[round(n * i / 3) for i in range(4)] for n in shape]
    return [
        (slice(edges[0][r], edges[0][r + 1]), slice(edges[1][c], edges[1][c + 1])) for r in range(3) for c in range(3)
    ]


def name(y: float, x: float) -> str:
    """The place of a point given as fractions of height and width."""
    return NAMES[3 * min(2, int(y * 3)) + min(2, int(x * 3))]


def sums(values: Array) -> Array:
    """(9,) float64 sums over the places."""
    return np.array([values[cell].sum(dtype=np.float64) for cell in cells(values.shape)])


def table(values: Array, *, signed: bool, unit: str) -> Table:
    """A row per place, most important first. Columns of shares add up to 100, or are 0 throughout."""
    total = sums(np.abs(values))
    mean = [float(values[c].mean(dtype=np.float64)) if values[c].size else 0.0 for c in cells(values.shape)]
    columns = [shares(list(total))]
    heads = ["share (%)"]
    if signed:
        heads = ["share of evidence for (%)", "share of evidence against (%)", "share of all (%)"]
        columns = [shares(list(sums(np.maximum(values, 0)))), shares(list(sums(np.maximum(-values, 0)))), *columns]
    order = sorted(range(len(NAMES)), key=lambda i: -total[i])
    rows = tuple((NAMES[i], *(column[i] for column in columns), float(f"{mean[i]:.3g}")) for i in order)
    return Table(("region", *heads, f"mean ({unit})" if unit else "mean"), rows)


def sentence(values: Array, *, signed: bool, target: str) -> str:
    """What carries the map, in words. `target`: name of what is explained, or empty."""
    target = short(target)
    to = f" for {target}" if target else ""
    if not values.any():
        return (
            f"The map is 0 everywhere: this method finds nothing that speaks for or against {target or 'the target'}."
        )
    if not signed:
        return _carried(sums(np.abs(values)), f"importance{to}")
    for_, against = sums(np.maximum(values, 0)), sums(np.maximum(-values, 0))
    if not for_.any():
        return f"Nothing speaks for {target or 'the target'}. " + _carried(against, "evidence against it")
    said = _carried(for_, f"evidence{to}")
    part = against.sum() / (for_.sum() + against.sum())
    if part < AGAINST:
        return said
    most = _at(NAMES[int(against.argmax())])
    return f"{said[:-1]}; {percent(part)} of all evidence speaks against it, most of it {most}."


def _carried(total: Array, what: str) -> str:
    share = total / total.sum()
    order = np.argsort(-share, kind="stable")
    count = next((n for n in (1, 2, 3) if share[order[:n]].sum() >= HALF - 1e-9), None)
    if count is None:
        return f"The {what} is spread over the picture; no ninth of it carries more than {percent(share.max())}."
    carried = share[order[:count]].sum()
    names = [f"the {NAMES[i]}" for i in order[:count]]
    listed = names[0] if count == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{listed[0].upper()}{listed[1:]} {'carries' if count == 1 else 'carry'} {percent(carried)} of the {what}."


def _at(place: str) -> str:
    return f"{'at' if place in ('top', 'bottom') else 'on' if place in ('left', 'right') else 'in'} the {place}"


def short(label: str) -> str:
    """The first of several synonyms, of both classes of a difference: "guenon, guenon monkey" -> "guenon"."""
    return " rather than ".join(part.split(",")[0].strip() for part in label.split(" rather than "))
