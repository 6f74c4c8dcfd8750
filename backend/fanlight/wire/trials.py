"""Trials on the wire: an intervention tried on every explanation of a sweep, and what becomes of the predictions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fanlight.wire.base import Label, Request, Wire
from fanlight.wire.sweeps import Portion

TrialState = Literal["running", "done", "cancelled", "failed"]
TrialItemState = Literal["waiting", "done", "failed", "cancelled"]
Move = Literal["corrected", "spoiled", "other", "same"]


class TrialWhere(Request):
    """Which explanations of the sweep: those of pictures with this label, of this predicted class, that are right or wrong, with these words."""

    label: Label | None = None
    predicted: Label | None = None
    outcome: Literal["right", "wrong"] | None = None
    q: Annotated[str, StringConstraints(max_length=200)] | None = None


class TrialRequest(Request):
    """Try `edits` on the finished explanations of a sweep. Only edits that mean the same for every picture: `general` of the explainer."""

    edits: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100)]
    where: TrialWhere = TrialWhere()


class Trial(Wire):
    """A bulk job. `counts` has a number for each state of its items; they add up to `total`."""

    id: str
    sweep: str
    edits: list[dict[str, Any]]
    about: str
    """The edits, and on what, in words."""
    where: TrialWhere
    state: TrialState
    problem: str | None = None
    """Why the server ended it."""
    total: int
    counts: dict[TrialItemState, int]
    progress: float
    seconds_left: float | None = None
    seconds: float
    mine: bool
    created: float
    finished: float | None = None


class Difference(Wire):
    """A difference of two shares of the same `n` pictures, with its 95 % interval; without one where n is 0."""

    n: int
    value: float | None = None
    lo: float | None = None
    hi: float | None = None


class TrialClass(Wire):
    """A class, as label and as prediction. `gained`: pictures of it that are right now and were wrong; `lost`: the other way round."""

    name: str
    labelled: int
    gained: int
    lost: int
    predicted_before: int
    predicted_after: int


class TrialSummary(Wire):
    """What became of the predictions so far."""

    trial: str
    n: int
    """Finished items that it is about."""
    total: int
    complete: bool
    labelled: int
    before: Portion
    after: Portion
    change: Difference
    corrected: int
    spoiled: int
    moved: int
    """Pictures whose predicted class changed, with a label or without."""
    classes: list[TrialClass]
    """Those of which something changed: the largest change of right answers first, then of predictions."""


class TrialItem(Wire):
    position: int
    name: str
    label: str | None = None
    input: str
    explanation: str
    state: TrialItemState
    reason: str | None = None
    before: str | None = None
    before_probability: float | None = None
    after: str | None = None
    after_probability: float | None = None
    move: Move | None = None
