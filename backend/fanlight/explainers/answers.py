"""What a person says about concepts, as edits: checked and brought into one form without torch and without the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fanlight.errors import InvalidField

Answer = str | float
WORDS = ("yes", "no", "unknown")
VALUE = '"yes", "no", "unknown", or how probable it is, from 0 to 1'
EDIT = "set_concept"


def canonical(edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Edits {"set_concept": {"concept": name or number, "value": ...}} with numbers for names and one answer a concept, the last.

    Args:
        about: metadata of a `concepts` artifact.

    Errors: InvalidField, code invalid_edit, also where answers exclude each other.
    """
    names: Sequence[str] = about["concepts"]
    said: dict[int, Answer] = {}
    for edit in edits:
        value = edit[EDIT]
        if not isinstance(value, Mapping) or set(value) != {"concept", "value"}:
            raise InvalidField(
                "An answer names a concept and a value.",
                code="invalid_edit",
                given=value,
                allowed={"concept": "name or number", "value": VALUE},
            )
        place = number(value["concept"], names)
        said.pop(place, None)  # the order is that of the last word on each
        said[place] = answer(value["value"], names[place])
    refuse_contradictions(said, about["exclusive"], names)
    return [{EDIT: {"concept": place, "value": value}} for place, value in said.items()]


def told(edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """Canonical answers in words: "bill shape hooked yes, spotted 0.3"."""
    said = ((e[EDIT]["concept"], e[EDIT]["value"]) for e in edits)
    return ", ".join(f"{plain(about['concepts'][k])} {v if isinstance(v, str) else format(v, '.3g')}" for k, v in said)


def number(given: Any, names: Sequence[str]) -> int:
    """The number of a concept that is given by name, by its words ("bill shape hooked") or by number."""
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(names):
        return given
    if isinstance(given, str):
        wanted = plain(given).casefold()
        found = [i for i, name in enumerate(names) if given == name] or [
            i for i, name in enumerate(names) if plain(name).casefold() == wanted
        ]
        if len(found) == 1:
            return found[0]
    raise InvalidField(
        f"There is no concept {given}." if not isinstance(given, str) else f"No concept is called “{given[:80]}”.",
        code="invalid_edit",
        given=given,
        allowed=list(names),
        hint=f"Give a name, or a number from 0 to {len(names) - 1}.",
    )


def answer(given: Any, name: str) -> Answer:
    """In one spelling: "yes" for 1, true and yes; "no" likewise; "unknown"; else the probability."""
    if given in WORDS and isinstance(given, str):
        return given
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, (int, float)) and math.isfinite(given) and 0 <= given <= 1:
        return {0.0: "no", 1.0: "yes"}.get(float(given), float(given))
    said = "A probability lies between 0 and 1" if isinstance(given, (int, float)) else "That is no answer"
    raise InvalidField(f"{said}: {given} for {plain(name)}.", code="invalid_edit", given=str(given)[:80], allowed=VALUE)


def probability(value: Answer) -> float | None:
    """None: unknown."""
    return {"yes": 1.0, "no": 0.0, "unknown": None}[value] if isinstance(value, str) else value


def refuse_contradictions(said: Mapping[int, Answer], exclusive: Sequence[Sequence[int]], names: Sequence[str]) -> None:
    """Exactly one concept of each group is there: two that are, probabilities beyond 1 in sum, or none at all cannot be meant."""
    for group in exclusive:
        inside = {c: p for c in group if c in said and (p := probability(said[c])) is not None}
        yes = [plain(names[c]) for c, p in inside.items() if p == 1]
        total = sum(inside.values())
        listed = ", ".join(plain(names[c]) for c in inside)
        if len(yes) > 1:
            problem = f"{' and '.join(yes)} exclude each other."
        elif total > 1 + 1e-9:
            problem = f"The probabilities of {listed} sum to {total:.2f}; they exclude each other."
        elif len(inside) == len(group) and total == 0:
            problem = f"One of {listed} is there; all were answered with no."
        else:
            continue
        raise InvalidField(
            problem,
            code="invalid_edit",
            given={names[c]: said[c] for c in inside},
            allowed="one yes in a group, probabilities that sum to at most 1",
            hint="Take one of the answers back.",
        )


def plain(name: str) -> str:
    """ "bill shape::hooked" as people say it."""
    return " ".join(name.replace("::", " ").split())
