"""Interventions and live edits on the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from fanlight.wire.base import Id, Request, Wire

Edits = Annotated[list[dict[str, Any]], Field(max_length=100)]


class InterventionRequest(Request):
    """A new explanation whose parent is `explanation`, with the whole list of edits. docs/interventions.md lists the edits of each family."""

    explanation: Id
    edits: Edits
    note: Annotated[str, StringConstraints(max_length=10_000)] = ""


class LiveRequest(Request):
    """A preview of edits, not stored. Of a session only the latest `seq` is answered."""

    session: Id
    explanation: Id
    edits: Edits
    seq: Annotated[int, Field(ge=0, lt=2**53)]


class LivePanel(Wire):
    seq: int
    target: dict[str, Any] | None = None
    target_name: str = ""
    summary: str = ""
    image: str
    """data:image/png;base64, ..."""
    legend: dict[str, Any]
