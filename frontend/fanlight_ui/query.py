"""The gallery's query: what the address says, what the API is asked, and the addresses of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fanlight_ui import session

FILTERS = {
    "family": "Family",
    "explainer": "Method",
    "model": "Model",
    "class": "Class",
    "outcome": "Outcome",
    "trust": "Trust",
    "tag": "Tag",
    "dataset": "Data set",
    "sweep": "Sweep",
}
"""Filters with facets, in the order of the page."""

SORTS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "probability": "most probable first",
    "faithfulness": "most faithful first",
}
VIEWS = ("cards", "table")
OTHERS = ("q", "owner", "sort", "view", "cursor")


@dataclass(frozen=True)
class Query:
    """Everything that the gallery shows follows from this; names are those of the address."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, address: Mapping[str, str]) -> Query:
        """From the query of an address; unknown names are left out."""
        return cls({k: v for k, v in address.items() if k in (*FILTERS, *OTHERS) and v})

    @property
    def view(self) -> str:
        return self.given.get("view", VIEWS[0])

    @property
    def sort(self) -> str:
        return self.given.get("sort", next(iter(SORTS)))

    @property
    def filters(self) -> dict[str, str]:
        """What narrows the list."""
        return {k: v for k, v in self.given.items() if k in FILTERS or k in ("q", "owner")}

    def asked(self, limit: int, cursor: str | None = None) -> dict[str, Any]:
        """Arguments of GET /explanations."""
        cursor = cursor or self.given.get("cursor")
        return {**self.filters, "sort": self.sort, "limit": limit, **({"cursor": cursor} if cursor else {})}

    def to(self, **changes: str | None) -> str:
        """The address with some values changed; None takes one out. Whatever changes, the list starts at its beginning again."""
        return session.href("/", **{**self.given, "cursor": None, **changes})
