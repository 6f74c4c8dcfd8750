"""What a benchmark reports: declared beforehand with its target, filled with one number per round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, computed_field


class Declared(BaseModel):
    """A figure before it is measured.

    Args:
        measures: what it is, for the table.
        unit: of its value; empty for a ratio or a count.
        at_most, at_least: the target, where there is one.
    """

    model_config = ConfigDict(frozen=True)

    measures: str
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"at most {self.at_most:g} {self.unit}".strip()
        if self.at_least is not None:
            return f"at least {self.at_least:g} {self.unit}".strip()
        return ""


class Figure(Declared):
    """A measured figure: the median of its rounds, and the smallest and largest of them."""

    value: float
    lo: float
    hi: float
    rounds: int
    remark: str = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None where there is none."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )

    @property
    def spread(self) -> str:
        return f"{number(self.lo)} to {number(self.hi)}" if self.rounds > 1 else "one round"

    def __str__(self) -> str:
        said = f"{number(self.value)} {self.unit}".strip() + f" ({self.spread})"
        return said if self.met is None else f"{said}; {self.target}: {'met' if self.met else 'MISSED'}"


def figures(
    declared: Mapping[str, Declared], measured: Mapping[str, Sequence[float]], remarks: Mapping[str, str] | None = None
) -> dict[str, Figure]:
    """The declared figures that were measured, in the order of their declaration.

    Args:
        measured: a value per round; a figure that is not in it was left out of this run.
        remarks: what a reader must know of a figure.
    """
    if strangers := set(measured) - set(declared):
        raise KeyError(f"measured but not declared: {sorted(strangers)}")
    return {
        name: Figure(
            **d.model_dump(),
            value=percentile(measured[name], 50),
            lo=min(measured[name]),
            hi=max(measured[name]),
            rounds=len(measured[name]),
            remark=(remarks or {}).get(name, ""),
        )
        for name, d in declared.items()
        if name in measured
    }


def passed(found: Mapping[str, Figure], declared: Mapping[str, Declared] | None = None) -> bool:
    """Whether every stated target among `found` was met. Args: declared: what there must be; of these a target that was not measured is not met."""
    missing = [name for name, d in (declared or {}).items() if d.target and name not in found]
    return not missing and all(f.met is not False for f in found.values())


def percentile(values: Sequence[float], p: float) -> float:
    """The p-th percentile, 0..100, between neighbours where it falls between two."""
    return float(np.percentile(values, p))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours over theirs, round by round: a machine that slows down for a round slows both sides of it."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def number(value: float) -> str:
    """Three significant digits, thousands apart, no exponent."""
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"
