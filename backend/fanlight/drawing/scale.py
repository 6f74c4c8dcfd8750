"""The scale of a map: signed maps are symmetric about 0, unsigned ones start at 0; decided here, once.

Without a caller's choice the end is the 99.5th percentile of |value|: one extreme pixel would otherwise pale the rest.
The legend then names the largest value too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fanlight.artifact import Artifact
from fanlight.drawing import colour
from fanlight.drawing.base import Legend
from fanlight.drawing.number import digits
from fanlight.errors import InvalidField

Array = np.ndarray[Any, np.dtype[Any]]

PERCENTILE = 99.5


def legend(artifact: Artifact, values: Array, *, cmap: str | None, lo: float | None, hi: float | None) -> Legend:
    """The scale of `values` (any shape).

    Args:
        cmap: a key of `colour.MAPS`; default: diverging for a signed map, else sequential.
        lo, hi: ends that the caller chose. Of a signed map the larger magnitude rules both, so that 0 stays neutral.
    """
    signed = bool(artifact.meta["signed"])
    cmap = cmap or ("diverging" if signed else "sequential")
    size = np.abs(values)
    largest = float(size.max()) if size.size else 0.0
    given = [v for v in (lo, hi) if v is not None]
    if not all(math.isfinite(v) for v in given):
        raise InvalidField("The ends of a scale are finite numbers.", given=[str(v) for v in given])
    if signed:
        end = max(map(abs, given)) if given else _robust(size, largest)
        lo, hi = -end, end
    else:
        lo, hi = lo or 0.0, _robust(size, largest) if hi is None else hi
    if not lo < hi:
        raise InvalidField("A scale ends above where it begins.", given=[lo, hi], hint="Choose lo below hi.")
    beyond = f" (largest {digits(largest)})" if largest > hi else ""
    words = ("against", "for") if signed else ("", "more")
    return Legend(lo, hi, str(artifact.meta["unit"]), cmap, colour.stops(cmap), words[0], words[1] + beyond)


def _robust(size: Array, largest: float) -> float:
    """The end of a scale; a map that is 0 all over gets 1."""
    return float(np.percentile(size, PERCENTILE)) or largest or 1.0
