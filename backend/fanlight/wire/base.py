"""What all wire types share: strictness, pages, facets, the one error shape."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints

T = TypeVar("T")

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
TERMINAL: tuple[State, ...] = ("succeeded", "failed", "cancelled", "expired")

Id = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Label = Annotated[str, StringConstraints(max_length=200)]


class Wire(BaseModel):
    """Answers may grow fields; requests refuse what they do not know."""

    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Facet(Wire):
    value: str
    label: str
    count: int


class Page(Wire, Generic[T]):
    """A page of a list. `total` is exact to 10,000; `total_is_floor` says that there are more."""

    items: list[T]
    next_cursor: str | None = None
    total: int
    total_is_floor: bool = False
    facets: dict[str, list[Facet]] = {}


class ErrorBody(Wire):
    code: str
    message: str
    given: Any = None
    allowed: Any = None
    hint: str | None = None


class Error(Wire):
    """The one error shape, everywhere."""

    error: ErrorBody
