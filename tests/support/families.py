"""A small model for each task that a family of explainers accepts, beyond plain image classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.bottleneck import bottleneck
from support.prototypes import classifier as prototypes

MODELS: dict[str, Callable[[int], Any]] = {"concept-bottleneck": bottleneck, "prototype-classifier": prototypes}
