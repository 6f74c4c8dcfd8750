"""The further checks of a map, made on request. docs/trust.md says what each of them is and how it misleads.

A check is one function of a `Subject`, in a module of its own, that yields as an explainer does and returns a `Found`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fanlight.artifact import Artifact
from fanlight.explainers.base import Step
from fanlight.quality import agreement, randomisation, stability
from fanlight.quality.again import NotMade, Subject
from fanlight.quality.found import Found


@dataclass(frozen=True)
class Measure:
    """Args:
    version: changes with every change of its numbers; a record of another version is measured again.
    passes: (cost of the method, its name, capabilities of the model, (H, W)) -> forward passes.
    """

    version: str
    passes: Callable[[int, str, Iterable[str], tuple[int, int]], int]
    run: Callable[[Subject], Generator[Step, None, Found]]


MEASURES: dict[str, Measure] = {
    "stability": Measure("1", lambda own, _name, _can, _size: stability.cost(own), stability.run),
    "randomisation": Measure("1", lambda own, _name, _can, _size: randomisation.cost(own), randomisation.run),
    "agreement": Measure("1", lambda _own, name, can, size: agreement.cost(name, can, size), agreement.run),
}


def run(name: str, subject: Subject) -> Generator[Step, None, tuple[dict[str, Any], Artifact | None]]:
    """The fields of `wire.Check` that the check itself knows, and its curves. Where it cannot be made, why in words."""
    version = MEASURES[name].version
    if not np.ptp(subject.patches(subject.value)) > 0:
        reason = "The map has the same value everywhere, so it puts the patches into no order."
        return {"state": "unavailable", "reason": reason, "version": version}, None
    try:
        found = yield from MEASURES[name].run(subject)
    except NotMade as e:
        return {"state": "unavailable", "reason": str(e), "version": version}, None
    return {**found.record(), "version": version}, found.curves
