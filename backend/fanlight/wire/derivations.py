"""Derivations on the wire: a change of a model that is for good, as a job whose result is a model of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from fanlight.wire.base import Id, Request, Wire
from fanlight.wire.sweeps import Portion
from fanlight.wire.trials import Difference

DerivationState = Literal["queued", "running", "done", "failed", "cancelled"]


Numbers = Annotated[list[Annotated[int, Field(strict=True, ge=0)]], Field(min_length=1, max_length=1000)]


class Change(Request):
    """One of: `remove`, prototypes that are taken out, with the last layer repaired; `forget`, prototypes that learn to look at something else;
    `add_class`, a further class, the label of its pictures in the data set."""

    remove: Numbers | None = None
    forget: Numbers | None = None
    add_class: Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Change:
        if sum(v is not None for v in (self.remove, self.forget, self.add_class)) != 1:
            raise ValueError("give one of remove, forget and add_class")
        return self


class DerivationRequest(Request):
    """Make a model of a model. `dataset`: pictures that the change is made for and measured on; some need labels that are classes."""

    change: Change
    dataset: Id


class Effect(Wire):
    """Accuracy on labelled pictures of the data set that the change was not made from: of a removal each half after a repair on the other
    half; of what was learnt, the half that it was not learnt from."""

    labelled: int
    before: Portion
    after: Portion
    zeroed: Portion | None = None
    """Of a removal: after it without a repair."""
    further: Portion | None = None
    """Of a further class: its own pictures that are right. All else is about the classes that were known before."""
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
