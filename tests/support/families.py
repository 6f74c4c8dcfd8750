"""A small model for each task that a family of explainers accepts, beyond plain image classifiers, and an input of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fanlight.adapters.base import takes
from fanlight.explainers.base import Drawing, Item, Target
from support import explaining
from support.bottleneck import bottleneck
from support.painting import painter
from support.prototypes import classifier as prototypes

MODELS: dict[str, Callable[[int], Any]] = {
    "concept-bottleneck": bottleneck,
    "prototype-classifier": prototypes,
    "text-to-image": painter,
}
PROMPTS = (
    "a red circle left of a blue cross",
    "a green cross left of a red cross",
    "a blue circle and a yellow circle above",
)


def item(model: Any, number: int = 0, target: Target | None = None, seed: int = 0) -> Item | Drawing:
    """A picture, or a prompt where the model draws, which has no target."""
    if takes(model.task) == "prompt":
        return Drawing(PROMPTS[number], None, seed, f"prompt {number}")
    return explaining.item(model, number, target, seed)
