"""A measure of a world where the truth is known, as a bar between chance and the truth's own score."""

from __future__ import annotations

from dataclasses import dataclass

from fanlight import wire
from fanlight.drawing.number import MINUS


@dataclass(frozen=True)
class Bar:
    """Percent of the track, 0 at the floor and 100 at the ceiling; `text` says it to those who do not see it, `floor` and `ceiling` stand at
    its ends."""

    at: float
    start: float
    width: float
    floor: str
    ceiling: str
    text: str


def bar(m: wire.Measurement) -> Bar:
    """The value, and from `start` on `width` of its interval."""
    at, (start, stop) = m.place(m.value), sorted((m.place(m.lo), m.place(m.hi)))
    floor, ceiling = number(m.floor), number(m.ceiling)
    return Bar(
        round(100 * at, 2),
        round(100 * start, 2),
        round(100 * (stop - start), 2),
        f"random {floor}",
        f"best possible {ceiling}",
        f"{m.unit.capitalize()} {number(m.value)} ({number(m.lo)} to {number(m.hi)}), between random, {floor}, and the best possible, {ceiling}.",
    )


def number(value: float) -> str:
    """Two decimals; no sign on zero."""
    text = f"{value:.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)
