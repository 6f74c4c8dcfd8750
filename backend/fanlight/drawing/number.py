"""Numbers as people read them: three significant digits, a real minus sign, percent with a space."""

from __future__ import annotations

import math
import time

MINUS = "\u2212"


def digits(value: float, n: int = 3) -> str:
    """0.0312, 12.4, 1,230, 3.1e−7: `n` significant digits, an exponent only below 0.0001."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value).replace("-", MINUS)
    value = float(f"{value:.{n - 1}e}")  # rounded first: 0.9996 is 1.00, not 1.000
    size = math.floor(math.log10(abs(value)))
    if size < -4:
        mantissa, exponent = f"{value:.{n - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    return f"{value:,.{max(0, n - 1 - size)}f}".replace("-", MINUS)


def signed(value: float, n: int = 3) -> str:
    """As `digits`, with its sign."""
    return ("+" if value > 0 else "") + digits(value, n)


def percent(share: float, decimals: int = 0) -> str:
    """0.613 -> "61 %"; what is not quite nothing or everything does not look like it."""
    least = 10.0**-decimals
    if 0 < share * 100 < least / 2:
        return f"< {least:g} %"
    if 100 - least / 2 <= share * 100 < 100:
        return f"> {100 - least:g} %"
    return f"{share * 100:.{decimals}f} %".replace("-", MINUS)


def output(probability: float | None, value: float, unit: str = "", decimals: int = 0) -> str:
    """What a model says of one output: its probability, or of a regression the value with its unit."""
    return f"{digits(value)} {unit}".strip() if probability is None else percent(probability, decimals)


def day(seconds: float) -> str:
    """Seconds since 1970 -> "1 Dec 2026", UTC."""
    at = time.gmtime(seconds)
    return f"{at.tm_mday} {time.strftime('%b %Y', at)}"


def shares(values: list[float], decimals: int = 1) -> list[float]:
    """Non-negative values -> percent of their sum, rounded by largest remainder: they add up to 100."""
    total = sum(values)
    if total <= 0:
        return [0.0] * len(values)
    unit = 10**decimals
    exact = [v / total * 100 * unit for v in values]
    whole = [math.floor(e) for e in exact]
    short = 100 * unit - sum(whole)
    for i in sorted(range(len(values)), key=lambda i: whole[i] - exact[i])[:short]:
        whole[i] += 1
    return [w / unit for w in whole]
