"""Comparisons of stored explanations: agreement of up to four, the difference of two as a map that is read like any other."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from fanlight import images, wire
from fanlight.api.access import Reader, Services
from fanlight.api.artifacts import Scale
from fanlight.drawing import renderer
from fanlight.service import comparisons

router = APIRouter()

KEPT = {"Cache-Control": "private, max-age=300"}
Map = Annotated[
    str, Query(alias="map", max_length=40, description="which map of a result of words, as its detail names them")
]
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}
RAW: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}


@router.get("/comparisons")
def compare(
    ids: Annotated[str, Query(max_length=600, description="two to four explanations, with commas")],
    context: Services,
    who: Reader,
    name: Map = "both",
) -> wire.Comparison:
    """Rank correlation of each pair on a common grid."""
    return comparisons.compare(context, who, [i.strip() for i in ids.split(",") if i.strip()], name)


@router.get("/comparisons/{a}/{b}")
def describe(a: str, b: str, context: Services, who: Reader, name: Map = "both") -> wire.ArtifactInfo:
    """The map of `a` minus `b`: its scale, sentence and table."""
    made, sentence = comparisons.difference(context, who, a, b, name)
    draw = renderer(made.kind)
    table = draw.table(made)
    return wire.ArtifactInfo(
        digest="",
        name=made.name,
        kind=made.kind,
        meta=dict(made.meta),
        arrays={k: {"dtype": str(v.dtype), "shape": list(v.shape)} for k, v in made.arrays.items()},
        legend={**asdict(draw.legend(made)), "lo_label": "second higher", "hi_label": "first higher"},
        sentence=sentence,
        table={"columns": list(table.columns), "rows": [list(r) for r in table.rows]},
    )


@router.get("/comparisons/{a}/{b}/render.png", response_class=Response, responses=PNG)
def render(
    a: str, b: str, context: Services, who: Reader, lo: Scale = None, hi: Scale = None, name: Map = "both"
) -> Response:
    made, _ = comparisons.difference(context, who, a, b, name)
    return Response(images.png(renderer(made.kind).image(made, lo=lo, hi=hi)), media_type="image/png", headers=KEPT)


@router.get("/comparisons/{a}/{b}/raw", response_class=Response, responses=RAW)
def raw(a: str, b: str, context: Services, who: Reader, name: Map = "both") -> Response:
    """The difference as safetensors."""
    made, _ = comparisons.difference(context, who, a, b, name)
    return Response(made.to_bytes(), media_type="application/octet-stream", headers=KEPT)
