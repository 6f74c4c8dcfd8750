"""Trainings on the wire: what a recipe has written of how far it is."""

from __future__ import annotations

from typing import Literal

from fanlight.wire.base import Wire

TrainingState = Literal["running", "quiet", "done"]


class TrainingStep(Wire):
    """A moment of a training: `done` of `of` in the stage; `figures` are losses and accuracies by name."""

    at: float
    stage: str
    done: int
    of: int
    figures: dict[str, float]


class Training(Wire):
    """A training that leaves its log in the folder FANLIGHT_TRAININGS.

    `running`: heard of within five minutes or three of its steps; `quiet`: not, so it has probably been stopped, and goes on from its checkpoint
    by the same command; `done`: it said so. `steps`: at most 200, evenly over the log, the last one among them. `seconds_left`: of the stage.
    """

    id: str
    title: str
    state: TrainingState
    began: float
    updated: float
    unit: str = "epochs"
    seconds_left: float | None = None
    steps: list[TrainingStep]
