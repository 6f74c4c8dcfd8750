"""Two to four stored explanations compared, on the wire."""

from __future__ import annotations

from fanlight.wire.base import Wire


class Comparison(Wire):
    """How far the maps of stored explanations agree."""

    explanations: list[str]
    comparable: bool
    """One unit and one kind of sign: the numbers mean the same."""
    same_picture: bool
    """Of one picture the part that all show is compared; of several, each map's whole extent."""
    grid: int
    """Cells along each side of the common grid."""
    agreement: list[list[float | None]]
    """Rank correlation of each pair, -1 to 1; None where a map is the same everywhere or nothing is in common."""
    map: str | None = None
    """Which map was compared, where a result has several."""
    maps: list[str] = []
    """Which of them there are."""
    sentence: str
    """What the numbers say."""
