"""How far to trust a map, in a badge and in plain words. docs/trust.md has the definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fanlight import wire
from fanlight.drawing.number import MINUS

Tone = Literal["good", "warn", "quiet"]


@dataclass(frozen=True)
class Badge:
    """A few words and what they mean; the tone is shown by colour and by shape."""

    tone: Tone
    text: str
    meaning: str


def score(value: float) -> str:
    """A faithfulness: two decimals and a sign, "0.00" without one."""
    text = f"{value:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)


def badge(trust: wire.Trust) -> Badge:
    """The badge of a trust record."""
    if trust.state != "succeeded" or trust.faithfulness is None:
        return _without(trust)
    interval = trust.interval.get("faithfulness")
    between = f" ({score(interval.lo)} to {score(interval.hi)})" if interval else ""
    if trust.above_floor:
        return Badge(
            "good",
            f"faithfulness {score(trust.faithfulness)} above random{between}",
            "Hiding what the map ranks highest changes the answer sooner than hiding parts in random order, and putting it "
            "back restores the answer sooner. A random order gets 0; more is better."
            + (" In brackets: the 95 % interval." if interval else ""),
        )
    return Badge(
        "warn",
        f"faithfulness {score(trust.faithfulness)}{between}: not above the random floor, do not read it",
        "Hiding what the map ranks highest changes the answer no sooner than hiding random parts. Whatever the map seems "
        "to show, nothing measured here supports it.",
    )


def _without(trust: wire.Trust) -> Badge:
    if trust.state in ("pending", "running"):
        return Badge("quiet", "not measured yet", "How far to trust this map was not measured before it was frozen.")
    reason = trust.reason or "The measurement failed."
    return Badge("quiet", "trust not available", reason if reason.endswith(".") else reason + ".")
