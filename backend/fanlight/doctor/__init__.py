"""Examinations that say in sentences what works and what is wrong: of this installation, of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["good", "warning", "bad", "none"]


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Args:
        name: what was looked at, two or three words.
        outcome: good; warning: works, but one should know; bad: does not work; none: does not apply.
        says: what was found, a sentence.
        hint: what to do, a sentence.
    """

    name: str
    outcome: Outcome
    says: str
    hint: str = ""


@dataclass(frozen=True)
class Report:
    """All checks of one examination; `details` are figures and tables beside them."""

    subject: str
    checks: Sequence[Check]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        return all(c.outcome != "bad" for c in self.checks)

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "sound": self.sound}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Report:
        return cls(value["subject"], [Check(**c) for c in value["checks"]], value["details"])
