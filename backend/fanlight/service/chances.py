"""Probabilities of the words of a result: equal, from a table that is sent along, or of the server's masked language model. They become an edit, so
that what is saved holds the numbers themselves and replays without table and model."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fanlight import wire
from fanlight.engine.base import Work
from fanlight.errors import Conflict, InvalidField, TooBusy
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find
from fanlight.service.keys import NUMERICS

KIND = "words"
WAIT = 60.0  # seconds: the language model is read when it is first asked
LEAST = 1e-12  # as of the language model: a probability of 0 would make every other word redundant


async def of(context: Context, visitor: Visitor, ident: str, asked: wire.ChancesRequest) -> wire.Chances:
    """Errors: unknown_explanation, not_editable, unknown_word, not_configured, not_installed, bad_model, bad_prompt."""
    row = await context.db.aread(lambda c: find(c, visitor.workspace, ident))
    named = next((a for a in row.artifacts or [] if a["kind"] == KIND), None)
    if named is None or not named["meta"]["words"]:
        raise Conflict(
            "Only a finished result about words of a prompt has probabilities of words.",
            code="not_editable",
            given=ident,
        )
    meta = named["meta"]
    if asked.source == "uniform":
        words = [wire.WordChance(word=n, text=w[2]) for n, w in enumerate(meta["words"])]
        return wire.Chances(
            source="uniform", words=words, edit={"set_rule": "pointwise"}, about="All words are equally likely."
        )
    if asked.source == "masked":
        found, said = await _masked(context, meta)
    else:
        table = asked.table or {}
        total = (asked.total or math.fsum(table.values())) if asked.source == "counts" else 1.0
        found = listed([w[2] for w in meta["words"]], table, total)
        said = f"a table of {len(asked.table or {}):,} words"
    return wire.Chances(
        source=asked.source,
        words=[
            wire.WordChance(word=n, text=w[2], probability=p)
            for n, (w, p) in enumerate(zip(meta["words"], found, strict=True))
        ],
        edit={"set_rule": ["pointwise", found, said]},
        about=f"By {said}"
        + (", each word in its prompt without it." if asked.source == "masked" else ", wherever the words stand."),
    )


def listed(words: Sequence[str], table: Mapping[str, float], total: float = 1.0) -> list[float]:
    """Probabilities by a table, however words are capitalised; of several words in a row that are not in it as they are, the product.

    Args: total: what the numbers of the table are divided by. Errors: unknown_word."""
    known: dict[str, float] = {}
    for word, value in table.items():
        name = " ".join(word.casefold().split())
        known[name] = known.get(name, 0.0) + value / total
    found = []
    for text in words:
        whole = known.get(" ".join(text.casefold().split()))
        if whole is None:
            parts = re.findall(r"\w+(?:['’\-]\w+)*", text.casefold())
            missing = [p for p in parts if p not in known]
            if missing or not parts:
                raise InvalidField(
                    f"The table has no “{missing[0] if missing else text}”.",
                    code="unknown_word",
                    given=text,
                    hint="Add it, or choose equal probabilities.",
                )
            whole = math.prod(known[p] for p in parts)
        found.append(min(1.0, max(LEAST, whole)))
    return found


async def _masked(context: Context, meta: Mapping[str, Any]) -> tuple[list[float], str]:
    work = Work(
        job="", attempt=0, kind="chances", model={"id": "", "digest": "", "source": {}, "size": []}, input="", explainer="", version="",
        params={}, target=None, seed=0, numerics=NUMERICS, questions=({"text": meta["prompt"], "spans": [w[:2] for w in meta["words"]]},),
    )  # fmt: skip
    try:
        answer = await asyncio.wait_for(context.engine.edit(work), WAIT)
    except TimeoutError:
        raise TooBusy("The language model did not answer in time.", retry_after=30, hint="Ask again.") from None
    return [float(p) for p in answer["probabilities"][0]], f"the masked language model {answer['name']}"[:100]
