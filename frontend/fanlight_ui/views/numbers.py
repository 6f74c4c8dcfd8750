"""Numbers, times and names as they are printed on a page. Numbers come from `fanlight.drawing`, so that they read the same everywhere."""

from __future__ import annotations

import time

from fanlight.drawing import number
from fanlight.drawing.number import day as day, digits as digits, signed as signed
from fanlight.drawing.trust import score as score
from fanlight.wire import Prediction

THIN = "\u202f"


def percent(share: float) -> str:
    """A probability as 95.2 %, and never as 100 % or 0 % where it is not."""
    return number.percent(share, 1)


def output(p: Prediction, decimals: int = 1) -> str:
    """What the model says of one output: its probability, or of a regression the value with its unit."""
    return number.output(p.probability, p.logit, p.unit, decimals)


def seconds(value: float) -> str:
    """A duration as a person says it: 0.4 s, 12 s, 3 min, 2.5 h."""
    if value < 0.95:
        return f"{max(value, 0.01):.1g}{THIN}s"
    if value < 90:
        return f"{value:.0f}{THIN}s"
    return f"{value / 60:.0f}{THIN}min" if value < 5400 else f"{value / 3600:.1f}{THIN}h"


def when(moment: float, now: float | None = None) -> str:
    """A time in UTC, as everywhere in a record: "today 14:02 UTC", else "1 Dec 2026 14:02 UTC"."""
    at, today = time.gmtime(moment), time.gmtime(now)
    return f"{'today' if at[:3] == today[:3] else day(moment)} {at.tm_hour:02d}:{at.tm_min:02d} UTC"


def short(name: str, n: int = 4) -> str:
    """The first characters of a digest or an id, with a sign that it goes on."""
    return name if len(name) <= n + 2 else name[:n] + "…"
