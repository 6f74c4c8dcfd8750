"""What a trial says, in words."""

from __future__ import annotations

from fanlight.drawing.number import MINUS
from fanlight.wire import TrialSummary


def points(share: float) -> str:
    """A difference of shares in points, with its sign: "+12.5", "−3.1"."""
    return f"{100 * share:+.1f}".replace("-", MINUS)


def changed(found: TrialSummary) -> str:
    """How far accuracy moved, and whether the data say so; of what has labels."""
    c = found.change
    if c.value is None or c.lo is None or c.hi is None:
        return crossed(found)
    return f"Change: {points(c.value)} points (95 % interval {points(c.lo)} to {points(c.hi)}). {crossed(found)}"


def crossed(found: TrialSummary) -> str:
    """How many predictions became right, or wrong."""
    c = found.change
    if c.lo is None or c.hi is None:
        return "No picture has a label, so nothing says whether it helped."
    said = f"{found.corrected:,} corrected, {found.spoiled:,} spoiled."
    if c.lo <= 0 <= c.hi:
        said += (
            " So few moves may be chance."
            if found.corrected + found.spoiled
            else " Nothing moved across right and wrong."
        )
    return said
