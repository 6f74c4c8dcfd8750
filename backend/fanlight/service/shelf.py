"""The data sets that a server is still reading: what it says of them until they are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fanlight import wire
from fanlight.errors import NotFound, unknown
from fanlight.service.context import WORKSPACE, Context, Visitor

if TYPE_CHECKING:
    from fanlight.service.datasets import Source


@dataclass
class Reading:
    """Args: source; done: files that were looked at."""

    source: Source
    done: int = 0

    def told(self, done: int, _total: int) -> None:
        self.done = done


def reading(context: Context, who: Visitor) -> list[wire.DatasetReading]:
    """Those of this server that are not read yet, in their order; data sets are read into one workspace."""
    if who.workspace != WORKSPACE:
        return []
    return [
        wire.DatasetReading(id=i, name=r.source.name, done=r.done, total=len(r.source.files))
        for i, r in dict(context.shelf).items()
    ]


def absent(context: Context, who: Visitor, ident: str, known: Sequence[str]) -> NotFound:
    """The 404 for a data set, which says so where it only has to be waited for."""
    found = context.shelf.get(ident) if who.workspace == WORKSPACE else None
    if found is None:
        return unknown("dataset", ident, known, hint="GET /api/v1/datasets lists them.")
    return NotFound(
        f"The data set “{found.source.name}” is still being read: {found.done:,} of {len(found.source.files):,} pictures.",
        code="unknown_dataset",
        given=ident,
        allowed=list(known) or None,
        hint="Ask again shortly. GET /api/v1/datasets/reading says how far it is.",
    )
