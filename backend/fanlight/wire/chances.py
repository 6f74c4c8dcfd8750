"""How probable words are, on the wire: what the pointwise rule of redundancy weighs them with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from fanlight.wire.base import Request, Wire

ChanceSource = Literal["uniform", "table", "counts", "masked"]
MOST = 1_000


class ChancesRequest(Request):
    """Where probabilities of the measured words come from: all equal; a `table` of words with their probabilities, or with how often they were
    counted, among `total` words or else those of the table; or the masked language model of the server, shown the prompt without the word."""

    source: ChanceSource
    table: (
        Annotated[
            dict[
                Annotated[str, StringConstraints(min_length=1, max_length=100)],
                Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)],
            ],
            Field(min_length=1, max_length=MOST),
        ]
        | None
    ) = None

    total: Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _table(self) -> ChancesRequest:
        if (self.source in ("table", "counts")) != (self.table is not None):
            raise ValueError("a table goes with the sources table and counts, and only with them")
        if self.total is not None and (self.source != "counts" or self.total < sum((self.table or {}).values())):
            raise ValueError("total goes with counts, and is no less than their sum")
        if self.source == "table" and max((self.table or {}).values()) > 1:
            raise ValueError("probabilities of words lie above 0 and up to 1; give numbers of occurrences as counts")
        return self


class WordChance(Wire):
    """A measured word, by its number, and its probability; None where all are equal."""

    word: int
    text: str
    probability: float | None = None


class Chances(Wire):
    """Probabilities of the measured words of a result. `edit` takes them into account: it goes into the list of edits of `POST /live` and
    `POST /interventions` as it is."""

    source: ChanceSource
    words: list[WordChance]
    edit: dict[str, Any]
    about: str
    """Where they come from, a sentence."""
