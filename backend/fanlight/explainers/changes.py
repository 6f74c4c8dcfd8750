"""What a person changes of a match of prototypes, as edits: checked and brought into one form without torch and without the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fanlight.errors import InvalidField

EDITS = {
    "mute_prototype": "a prototype: what it adds is left out",
    "gate_part": "[prototype, part]: the part is left out, all others stay where they are",
    "remove_part": "[prototype, part]: the part is left out and the others look again",
    "exclude_region": "[x0, y0, x1, y1] in pixels of the stored picture: no prototype may look there",
    "why_not": "a class: its prototypes are shown beside, and the fewest that would have to go for it to win",
}
GENERAL = frozenset({"mute_prototype", "gate_part", "remove_part"})
"""Regions are of one picture, and asking "why not?" changes nothing."""
Region = tuple[float, float, float, float]
Cell = tuple[int, int]


class Changes(NamedTuple):
    """Edits in one form.

    Args: regions: excluded. parts: (prototype, part) -> gate_part | remove_part. muted: prototypes. against: of "why not?".
    """

    regions: list[Region]
    parts: dict[tuple[int, int], str]
    muted: list[int]
    against: int | None

    @classmethod
    def of(cls, edits: Sequence[Mapping[str, Any]]) -> Changes:
        """From canonical edits."""
        found = cls([], {}, [], None)
        for edit in edits:
            ((kind, value),) = edit.items()
            if kind == "exclude_region":
                found.regions.append((value[0], value[1], value[2], value[3]))
            elif kind == "mute_prototype":
                found.muted.append(value)
            elif kind == "why_not":
                found = found._replace(against=value)
            else:
                found.parts[value[0], value[1]] = kind
        return found

    @property
    def touched(self) -> list[int]:
        """Prototypes that are named."""
        return list(dict.fromkeys([*(j for j, _ in self.parts), *self.muted]))

    def removed(self) -> dict[int, list[int]]:
        """Prototype -> parts that do not take part in its match any more."""
        found: dict[int, list[int]] = {}
        for (j, k), kind in self.parts.items():
            if kind == "remove_part":
                found.setdefault(j, []).append(k)
        return found


def canonical(edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same edits in one order, each once; of a part the last word; without parts of a prototype that is muted.

    Args:
        about: metadata of a `prototypes` artifact.

    Errors: InvalidField, code invalid_edit.
    """
    count, parts, classes = int(about["prototypes"]), int(about["parts"]), int(about["classes"])
    regions: set[Region] = set()
    muted: set[int] = set()
    kinds: dict[tuple[int, int], str] = {}
    against: int | None = None
    for edit in edits:
        ((kind, value),) = edit.items()
        if kind == "exclude_region":
            regions.add(_region(value, about))
        elif kind == "mute_prototype":
            muted.add(_whole(value, count, "prototype", kind))
        elif kind == "why_not":
            against = _whole(value, classes, "class", kind)
        else:
            if not isinstance(value, (list, tuple)) or len(value) != 2:
                raise _invalid("A part is named by its prototype and its number.", value, EDITS[kind])
            pair = _whole(value[0], count, "prototype", kind), _whole(value[1], parts, "part", kind)
            kinds[pair] = kind
    left = about["grid"][0] * about["grid"][1] - len(excluded(sorted(regions), about))
    if left < parts:
        raise _invalid(
            f"Every prototype needs {parts} places to look at; {left} are left of the picture.",
            [list(r) for r in sorted(regions)],
            "regions that leave more of the picture",
        )
    kept = {pair: kind for pair, kind in kinds.items() if pair[0] not in muted}
    return [
        *({"exclude_region": [_plain(v) for v in r]} for r in sorted(regions)),
        *({kind: list(pair)} for wanted in ("remove_part", "gate_part") for pair, kind in sorted(kept.items()) if kind == wanted),
        *({"mute_prototype": j} for j in sorted(muted)),
        *([{"why_not": against}] if against is not None else []),
    ]  # fmt: skip


def told(edits: Sequence[Mapping[str, Any]]) -> str:
    """Canonical edits of `GENERAL` in words: "prototype 17 muted, part 2 of prototype 3 left out"; parts are counted from 1, as on the page."""
    words = {"gate_part": "left out", "remove_part": "taken out, the others look again"}
    said = []
    for edit in edits:
        ((kind, value),) = edit.items()
        if kind == "mute_prototype":
            said.append(f"prototype {value} muted")
        else:
            said.append(f"part {value[1] + 1} of prototype {value[0]} {words[kind]}")
    return ", ".join(said)


def excluded(regions: Sequence[Region], about: Mapping[str, Any]) -> set[Cell]:
    """(row, column) of the cells that a region reaches into."""
    rows, columns = about["grid"]
    left, top, right, bottom = about["box"]
    return {
        (r, c)
        for x0, y0, x1, y1 in regions
        for r in _reached(y0, y1, top, bottom, rows)
        for c in _reached(x0, x1, left, right, columns)
    }


def _reached(lo: float, hi: float, start: float, end: float, count: int) -> Iterator[int]:
    """Cells of a row of `count` from start to end that lo..hi overlaps."""
    side = (end - start) / count
    first, last = math.floor((lo - start) / side + 1e-9), math.ceil((hi - start) / side - 1e-9)
    yield from range(max(first, 0), min(last, count))


def _region(value: Any, about: Mapping[str, Any]) -> Region:
    numbers = (
        isinstance(value, (list, tuple))
        and len(value) == 4
        and all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in value)
    )
    if not numbers or not (value[0] < value[2] and value[1] < value[3]):
        raise _invalid("A region is four numbers: left, top, right, bottom.", value, EDITS["exclude_region"])
    region = (float(value[0]), float(value[1]), float(value[2]), float(value[3]))
    if not excluded([region], about):
        raise _invalid("This region lies outside of what the model sees.", value, [round(v, 1) for v in about["box"]])
    return region


def _whole(value: Any, count: int, what: str, kind: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise _invalid(f"There is no {what} {value}: they are numbered from 0 to {count - 1}.", value, EDITS[kind])
    return value


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def _invalid(message: str, given: Any, allowed: Any) -> InvalidField:
    return InvalidField(message, code="invalid_edit", given=given, allowed=allowed)
