"""Numbers and times as they are printed: three significant digits, a real minus sign, a unit."""

from __future__ import annotations

import math
import time

MINUS = "\u2212"
THIN = "\u202f"


def digits(value: float, n: int = 3) -> str:
    """`value` with n significant digits, without an exponent where a person would not write one: 0.0312, 12.4, 1,230, 3.1e-7."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = math.floor(math.log10(abs(value)))
    if size < -4:
        mantissa, exponent = f"{value:.{n - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        text = f"{round(value, n - 1 - size):,.{max(0, n - 1 - size)}f}"
    return text.replace("-", MINUS)


def signed(value: float, n: int = 3) -> str:
    """As `digits`, always with its sign."""
    return ("+" if value > 0 else "") + digits(value, n)


def score(value: float) -> str:
    """A score between -1 and 1 or so, with its sign: +0.52."""
    text = f"{value:+.2f}"
    return ("0.00" if float(text) == 0 else text).replace("-", MINUS)


def percent(p: float) -> str:
    """A probability as 95.2 %, and never as 100 % or 0 % where it is not."""
    value = 100 * p
    if 0 < value < 0.1:
        return f"< 0.1{THIN}%"
    if 99.95 <= value < 100:
        return f"> 99.9{THIN}%"
    return f"{value:.1f}{THIN}%"


def seconds(value: float) -> str:
    """A duration as a person says it: 0.4 s, 12 s, 3 min, 2 h."""
    if value < 0.95:
        return f"{max(value, 0.01):.1g}{THIN}s"
    if value < 90:
        return f"{value:.0f}{THIN}s"
    return f"{value / 60:.0f}{THIN}min" if value < 5400 else f"{value / 3600:.1f}{THIN}h"


def when(moment: float, now: float | None = None) -> str:
    """A time of the server's clock: "today 14:02", else "1 Dec 2026 14:02"."""
    t, today = time.localtime(moment), time.localtime(now)
    clock = f"{t.tm_hour:02d}:{t.tm_min:02d}"
    if t[:3] == today[:3]:
        return f"today {clock}"
    return f"{t.tm_mday} {time.strftime('%b %Y', t)} {clock}"


def short(name: str, n: int = 4) -> str:
    """The first digits of a digest or an id, with a sign that it goes on."""
    return name if len(name) <= n + 2 else name[:n] + "…"
