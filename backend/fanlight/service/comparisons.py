"""Stored explanations side by side: their agreement and the difference of two, from their artifacts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row

from fanlight import comparison, wire
from fanlight.artifact import Artifact
from fanlight.drawing import places
from fanlight.drawing.information import NAMES, Read
from fanlight.drawing.trust import score
from fanlight.drawing.words import UNIT
from fanlight.errors import Conflict, InvalidField
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find

MOST = 4
WORDS = "words"
"""The kind that has several maps; the one that is meant is named, as in `drawing.information`."""


def compare(context: Context, visitor: Visitor, ids: Sequence[str], name: str = "both") -> wire.Comparison:
    """Errors: unknown_explanation, not_finished; invalid_field for too few or too many; no_map for a result without a map; unknown_map."""
    ids = list(dict.fromkeys(ids))
    if not 2 <= len(ids) <= MOST:
        raise InvalidField(f"Two to {MOST} different explanations can be compared.", given=len(ids), allowed=[2, MOST])
    maps, same, several = _loaded(context, visitor, ids, name)
    matrix = comparison.agreement(maps, same_picture=same)
    return wire.Comparison(
        explanations=ids,
        comparable=comparison.comparable(maps),
        same_picture=same,
        grid=comparison.GRID,
        agreement=matrix,
        map=name if several else None,
        maps=list(NAMES) if several else [],
        sentence=_said([f"map {n}" for n in range(1, len(ids) + 1)], matrix),
    )


def difference(context: Context, visitor: Visitor, first: str, second: str, name: str = "both") -> tuple[Artifact, str]:
    """The map of first minus second, and what it says."""
    maps, same, _ = _loaded(context, visitor, [first, second], name)
    try:
        made = comparison.difference(*maps, same_picture=same)
    except ValueError as e:
        raise InvalidField(f"There is no difference to show: {e}.", code="nothing_in_common") from e
    return made, _where(made)


def _loaded(context: Context, visitor: Visitor, ids: Sequence[str], name: str) -> tuple[list[Artifact], bool, bool]:
    """The maps, whether they are of one picture, and whether `name` chose one of several."""
    if name not in NAMES:
        raise InvalidField(
            f"A result of words has no map “{name[:40]}”.", code="unknown_map", given=name[:40], allowed=list(NAMES)
        )

    def act(conn: Connection) -> list[Row[Any]]:
        return [find(conn, visitor.workspace, i) for i in ids]

    rows = context.db.read(act)
    maps, pictures, several = [], set(), False
    for row in rows:
        if row.state != "succeeded":
            raise Conflict(
                f"Only finished explanations can be compared; this one is {row.state}.",
                code="not_finished",
                given=row.id,
            )
        named = next((a for a in row.artifacts if a["kind"] in (*comparison.MAPS, WORDS)), None)
        if named is None:
            raise InvalidField("This explanation has no map to compare.", code="no_map", given=row.id)
        stored = Artifact.from_bytes(context.blobs.get(named["digest"]))
        drawn = b""
        if stored.kind == WORDS:  # of one prompt there are many pictures
            drawn, several = stored.arrays["picture"].tobytes(), True
            stored = _one(stored, name)
        pictures.add((row.input, drawn))
        maps.append(stored)
    return maps, len(pictures) == 1, several


def _one(stored: Artifact, name: str) -> Artifact:
    """One of the maps of two words, over its picture."""
    height, width = stored.arrays["picture"].shape[:2]
    meta = {"unit": UNIT, "signed": name == "synergy", "box": [0.0, 0.0, float(width), float(height)]}
    return Artifact(name, "image-map", {"value": Read(stored).maps[name].astype("float32")}, meta).check()


def _said(names: Sequence[str], matrix: Sequence[Sequence[float | None]]) -> str:
    pairs = [
        (value, names[i], names[j])
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if (value := matrix[i][j]) is not None
    ]
    if not pairs:
        return "No rank correlation exists here: a map is the same everywhere, or the maps show nothing in common."
    if len(pairs) == 1:
        value, a, b = pairs[0]
        return f"{a.capitalize()} and {b} {_grade(value)} ({score(value)})."
    most, least = max(pairs), min(pairs)
    return (
        f"{most[1].capitalize()} and {most[2]} are closest: they {_grade(most[0])} ({score(most[0])}). "
        f"{least[1].capitalize()} and {least[2]} are furthest apart: they {_grade(least[0])} ({score(least[0])})."
    )


def _grade(value: float) -> str:
    """Words for a rank correlation; the bounds are conventions, which the number beside them keeps honest."""
    for bound, words in ((0.7, "rank places much alike"), (0.4, "rank places somewhat alike"), (0.1, "agree little")):
        if value >= bound:
            return words
    return "do not agree" if value > -0.1 else "tend to the opposite"


def _where(made: Artifact) -> str:
    value = made.arrays["value"]
    if not value.any():
        return "The two maps are equal everywhere."
    more, less = places.sums(value.clip(min=0)), places.sums((-value).clip(min=0))
    said = [
        f"the {which} is higher most in the {places.NAMES[int(total.argmax())]}"
        for which, total in (("first", more), ("second", less))
        if total.any()
    ]
    text = "; ".join(said) + "."
    return text[0].upper() + text[1:]
