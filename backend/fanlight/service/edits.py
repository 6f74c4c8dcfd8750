"""Edits as data: what a person changed. Each is an object with one key; the whole list is sent every time, so any server can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from fanlight import wire
from fanlight.errors import InvalidField
from fanlight.explainers.base import Explainer

KNOWN = {
    "mask_region": "[x0, y0, x1, y1] in pixels of the stored picture: filled with mid grey before the model sees it",
    "set_target": 'a class index or name, {"class": i}, {"minus": [a, b]}, {"similar_to": input} or {"concept": k}: explains this output instead',
}
FAR = 2**31  # beyond any picture; false for NaN too
_target: TypeAdapter[wire.Target] = TypeAdapter(wire.Target)


class Edits(NamedTuple):
    """Edits in canonical form: `pixels` of the picture, `own` of the method's result, and the last target that was set."""

    pixels: list[dict[str, Any]]
    own: list[dict[str, Any]]
    target: wire.Target | None


def parse(
    edits: Sequence[Mapping[str, Any]],
    width: int,
    height: int,
    explainer: type[Explainer] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Edits:
    """Checks a list of edits of a record whose picture is `width` x `height`.

    Args:
        explainer, about: the method and the metadata of its result, where that can be changed.

    Errors: invalid_edit, with the number of the edit.
    """
    known = {**KNOWN, **(explainer.edits if explainer else {})}
    pixels: list[dict[str, Any]] = []
    own: list[Mapping[str, Any]] = []
    target: wire.Target | None = None
    for n, edit in enumerate(edits, 1):
        if len(edit) != 1 or next(iter(edit)) not in known:
            raise InvalidField(
                f"Edit {n} is not known.",
                code="invalid_edit",
                given=dict(edit),
                allowed=known,
                hint="Each edit is an object with one key.",
            )
        ((kind, value),) = edit.items()
        if kind == "mask_region":
            pixels.append({kind: _region(n, value, width, height)})
        elif kind not in KNOWN:
            own.append(edit)
        else:
            try:
                target = _target.validate_python(value)
            except (ValidationError, RecursionError):
                raise InvalidField(
                    f"Edit {n} names no target.", code="invalid_edit", given=value, allowed=KNOWN[kind]
                ) from None
    return Edits(pixels, explainer.canonical(own, about or {}) if explainer and own else [], target)


def _region(n: int, value: Any, width: int, height: int) -> list[int]:
    numbers = (
        isinstance(value, (list, tuple))
        and len(value) == 4
        and all(isinstance(v, (int, float)) and not isinstance(v, bool) and -FAR < v < FAR for v in value)
    )
    if not numbers:
        raise InvalidField(
            f"Edit {n}: a region is four finite numbers.",
            code="invalid_edit",
            given=value,
            allowed=KNOWN["mask_region"],
        )
    x0, y0, x1, y1 = (round(v) for v in value)
    if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
        raise InvalidField(
            f"Edit {n}: the region must lie inside the picture and must not be empty.",
            code="invalid_edit",
            given=value,
            allowed=[0, 0, width, height],
        )
    return [x0, y0, x1, y1]
