"""Interventions and live edits on the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from fanlight.wire.base import Id, Request, Wire
from fanlight.wire.explanations import Prediction

Edits = Annotated[list[dict[str, Any]], Field(max_length=1000)]


class InterventionRequest(Request):
    """A new explanation whose parent is `explanation`, with the whole list of edits. docs/interventions.md lists the edits of each family."""

    explanation: Id
    edits: Edits
    note: Annotated[str, StringConstraints(max_length=10_000)] = ""


class LiveRequest(Request):
    """A preview of edits, not stored. Of a session only the latest `seq` is answered. `suggest`: what to change next, instead of the panel."""

    session: Id
    explanation: Id
    edits: Edits
    seq: Annotated[int, Field(ge=0, lt=2**53)]
    suggest: bool = False


class LivePanel(Wire):
    """The result after the edits: of a map its picture and scale, of anything else what the page draws (`detail`) and the prediction."""

    seq: int
    target: dict[str, Any] | None = None
    target_name: str = ""
    summary: str = ""
    image: str | None = None
    """data:image/png;base64, ..."""
    legend: dict[str, Any] | None = None
    detail: dict[str, Any] = {}
    prediction: list[Prediction] = []
    suggestion: dict[str, Any] | None = None
    """Where it was asked for: which edit to make next, and what may come of it."""
