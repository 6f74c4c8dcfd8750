"""Derivations on the wire: a change of a model that is for good, as a job whose result is a model of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fanlight.wire.base import Id, Request, Wire
from fanlight.wire.sweeps import Portion
from fanlight.wire.trials import Difference

DerivationState = Literal["queued", "running", "done", "failed", "cancelled"]


class Change(Request):
    """What is changed. `remove`: numbers of prototypes that are taken out, with the last layer repaired."""

    remove: Annotated[list[Annotated[int, Field(strict=True, ge=0)]], Field(min_length=1, max_length=1000)]


class DerivationRequest(Request):
    """Make a model of a model. `dataset`: pictures that the change is made for and measured on; some need labels that are classes."""

    change: Change
    dataset: Id


class Effect(Wire):
    """Accuracy on the labelled pictures of the data set, of each half after a change that was made on the other half."""

    labelled: int
    before: Portion
    after: Portion
    zeroed: Portion
    """After the same change without a repair."""
    difference: Difference
    corrected: int
    spoiled: int
    moved: int
    """Predictions that changed, of labelled pictures and others."""


class Derivation(Wire):
    """A job in a process of its own, one at a time. When it is done, `result` is the id of the new model."""

    id: str
    model: str
    model_name: str
    change: Change
    dataset: str
    state: DerivationState
    progress: float
    message: str = ""
    problem: str | None = None
    """Why it failed."""
    result: str | None = None
    result_name: str | None = None
    effect: Effect | None = None
    mine: bool
    created: float
    finished: float | None = None
