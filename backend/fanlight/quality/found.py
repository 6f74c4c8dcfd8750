"""What a further check gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fanlight.artifact import Artifact

Number = dict[str, float]
"""{"value", "lo", "hi"}: of `wire.Reading`."""


@dataclass(frozen=True)
class Found:
    """The fields of `wire.Check` that a measure itself knows.

    Args:
        found: the number that stands for the check.
        floors: what random maps and the edge detector get: "random", "edges".
        verdict: good, plain, or warn where people ought to be told.
        more: further numbers by name.
        parameters, seeds: all that it takes to measure it again.
        curves: behind the number, where there are some.
    """

    found: Number
    floors: dict[str, Number]
    verdict: str
    more: dict[str, Number] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    curves: Artifact | None = None

    def record(self) -> dict[str, Any]:
        """JSON-able, without the curves."""
        return {
            "state": "succeeded",
            "found": self.found,
            "floors": self.floors,
            "verdict": self.verdict,
            "more": self.more,
            "parameters": self.parameters,
            "seeds": self.seeds,
        }
