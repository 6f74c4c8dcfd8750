"""What a method will cost, said before it runs: forward passes as it declares them, seconds as this server measured them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fanlight import wire
from fanlight.client import calls
from fanlight_ui.session import ask
from fanlight_ui.views.numbers import seconds

RECENT = 5


async def rate(model: str, explainer: str) -> float | None:
    """Seconds that this server took for recent explanations of a model by a method: their median, or None before the first."""
    page = await ask(calls.explanations(model=model, explainer=explainer, limit=RECENT))
    return median(page.items)


def median(records: Sequence[wire.Explanation]) -> float | None:
    taken = [r.provenance.seconds for r in records if r.provenance.seconds is not None]
    return statistics.median(taken) if taken else None


def words(cost: int, taken: float | None) -> str:
    """ "≈ 514 forward passes, about 6 s here" """
    passes = f"≈ {cost:,} forward passes" if cost > 1 else "one forward pass" if cost == 1 else "no forward pass"
    return passes + (f", about {seconds(taken)} here" if taken is not None else "")
