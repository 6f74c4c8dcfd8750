"""What is known of a data set that Fanlight drew itself: its labels, concepts and parts, how these hang together, and what is where in a picture."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fanlight import wire
from fanlight.drawing.parts import overlay
from fanlight.errors import InvalidField, NotFound
from fanlight.service import datasets
from fanlight.service.context import Context, Visitor
from fanlight.service.field_guide import COUNT, FIELD_GUIDE, SIZE
from fanlight.service.shelf import absent

if TYPE_CHECKING:
    from fanlight_models.worlds.fieldguide.posterior import Belief

MEASURED = 96
"""Scenes that are drawn to say what remains given the picture: half a second, once."""
MOST = 768


def of(context: Context, who: Visitor, ident: str) -> wire.World:
    """Errors: unknown_dataset, no_world."""
    _known(context, who, ident)
    return _field_guide()


def parts(context: Context, who: Visitor, ident: str, position: int, size: int) -> bytes:
    """Sample `position` with its visible parts in colours and numbered, PNG. Errors: unknown_dataset, no_world, unknown_sample, invalid_size."""
    _known(context, who, ident)
    if not 0 <= position < COUNT:
        raise NotFound(
            f"The field guide has no sample {position}.", code="unknown_sample", given=position, allowed=[0, COUNT - 1]
        )
    if not 16 <= size <= MOST:
        raise InvalidField(
            "The size lies between 16 and 768 pixels.", code="invalid_size", given=size, allowed=[16, MOST]
        )
    return _parts(position, size)


def _known(context: Context, who: Visitor, ident: str) -> None:
    there = [d.id for d in datasets.listed(context, who)]
    if ident not in there:
        raise absent(context, who, ident, there)
    if ident != FIELD_GUIDE:
        raise NotFound(
            "This data set is no world: nothing is known of its pictures but their labels.",
            code="no_world",
            given=ident,
            allowed=[FIELD_GUIDE],
        )


@lru_cache(256)
def _parts(position: int, size: int) -> bytes:
    from fanlight_models.worlds.fieldguide import draw, split

    drawn = draw(split("test", position + 1)[position], SIZE)
    out = io.BytesIO()
    overlay(drawn.image, drawn.masks, drawn.points, size).save(out, "PNG")
    return out.getvalue()


@lru_cache(1)
def _field_guide() -> wire.World:
    from fanlight_models.worlds.fieldguide import COUPLED, FAMILIES, FAMILY_OF, GROUPS, PARTS, SPECIES, arrays, split
    from fanlight_models.worlds.fieldguide.posterior import believe, between, correlation, residual
    from fanlight_models.worlds.fieldguide.table import typical

    nothing = np.zeros((1, len(GROUPS)), bool)
    before = correlation(believe(nothing.astype(np.int64), nothing).covariance())
    drawn = arrays(split("test", MEASURED))
    seen: Belief = believe(drawn.values, drawn.seen)
    left = residual(seen)
    names = [g.name for g in GROUPS]
    shown = typical()[:, 0]  # state 0: male, adult, breeding
    return wire.World(
        dataset=FIELD_GUIDE,
        name="Field guide",
        description=(
            "Birds made of parts. Which species, concepts and parts a picture shows is known, and so is what can be inferred about what leaves hide: "
            "the table below is the whole truth that it is drawn from."
        ),
        docs="docs/data/field-guide.md",
        parts=list(PARTS),
        families=list(FAMILIES),
        kinds=[
            wire.WorldKind(
                name=name,
                family=FAMILIES[FAMILY_OF[i]],
                typical={g.name: g.values[int(v)] for g, v in zip(GROUPS, shown[i], strict=True)},
            )
            for i, name in enumerate(SPECIES)
        ],
        groups=[
            wire.WorldGroup(name=g.name, values=list(g.values), parts=list(g.parts), variation=g.variation)
            for g in GROUPS
        ],
        correlation=[[1.0 if a == b else round(abs(between(before, a, b)), 3) for b in names] for a in names],
        pairs=[
            wire.WorldPair(
                first=a, second=b, overall=round(abs(between(before, a, b)), 3), remains=round(abs(left[a, b]), 3)
            )
            for a, b in COUPLED
        ],
        measured_on=MEASURED,
    )
