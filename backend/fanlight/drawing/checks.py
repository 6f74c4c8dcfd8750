"""The further checks of a map in plain words. docs/trust.md has the definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fanlight import wire
from fanlight.drawing.world import number


@dataclass(frozen=True)
class Words:
    """Of one check.

    Args:
        title, about: its name and what it asks, for people.
        good, plain, warn: what its verdict means.
        unit: what its number is.
        ends: of its scale.
        alarms: whether its `warn` is a reason not to read the map.
    """

    title: str
    about: str
    good: str
    plain: str
    warn: str
    unit: str
    ends: tuple[float, float] = (0.0, 1.0)
    alarms: bool = True


WORDS: dict[str, Words] = {
    "stability": Words(
        "Stability",
        "the same picture with noise that one hardly sees",
        good="Steady: noise that one hardly sees leaves the order of its patches as it is.",
        plain="Noise that one hardly sees changes part of it: do not read single patches.",
        warn="Noise that one hardly sees makes another map of it, no more like this one than a random map is.",
        unit="rank correlation",
    ),
    "randomisation": Words(
        "Untrained network",
        "the same method on the network with random weights",
        good="It shows what the network has learned: on an untrained network little of it is left.",
        plain="Some of it may be there on an untrained network too: that part shows the picture, not what the network has learned.",
        warn="It looks the same on an untrained network: it shows the picture, not the model.",
        unit="|rank correlation|",
    ),
    "agreement": Words(
        "Agreement",
        "other methods asked the same question",
        good="Methods that work in other ways rank the patches much as this one does.",
        plain="Methods that work in other ways agree in part.",
        warn="Methods that work in other ways rank the patches otherwise: do not rest on this one alone.",
        unit="rank correlation",
        alarms=False,
    ),
}


def sentence(name: str, check: wire.Check) -> str:
    """What was found, in words; what stands in its way where nothing was."""
    if check.state == "pending":
        return "Being measured: it gives way to pictures that somebody waits for."
    if check.state != "succeeded" or check.verdict is None:
        reason = check.reason or "The measurement failed."
        return reason if reason.endswith((".", "!", "?")) else f"{reason}."
    words: str = getattr(WORDS[name], check.verdict)
    return words


def beside(check: wire.Check) -> str:
    """The numbers behind it, in a line: what was varied how often, and its further numbers by name."""
    found = [f"{part} {number(r.value)}" for part, r in check.more.items() if not part.endswith(" of edges")]
    return "; ".join(filter(None, (_varied(check.parameters), ", ".join(found))))


def _varied(parameters: Mapping[str, Any]) -> str:
    if "sigma" in parameters:
        return f"{parameters['draws']} draws of noise of {100 * parameters['sigma']:g} % of the range"
    if "layers" in parameters:
        return f"all {parameters['layers']} layers drawn anew, {parameters['draws'][-1]} times"
    return ""
