"""Saved views of the gallery on the wire: a question under a name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from fanlight.wire.base import Request, Wire

Name = Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
Words = Annotated[str, StringConstraints(min_length=1, max_length=200)]

VIEWED = (
    "family", "explainer", "model", "class", "outcome", "trust", "tag", "dataset", "sweep", "owner", "q", "sort", "view",
)  # fmt: skip
"""What a view may hold: the parameters of the gallery's address."""

Asked = Annotated[dict[str, Words], Field(max_length=len(VIEWED))]


class ViewRequest(Request):
    """Keep a question to the gallery."""

    name: Name
    query: Asked = {}


class ViewPatch(Request):
    name: Name | None = None
    query: Asked | None = None


class SavedView(Wire):
    id: str
    name: str
    query: dict[str, str]
    mine: bool
    created: float
