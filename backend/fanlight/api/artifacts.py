"""Artifacts: immutable, readable through a record of the visitor's workspace; metadata, picture, arrays, table."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy import select

from fanlight import wire
from fanlight.api.access import Reader, Services, fresh, lasting
from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.drawing.scene import LARGEST
from fanlight.errors import unknown
from fanlight.service.context import Context, Visitor
from fanlight.store.tables import explanation, reference

router = APIRouter()

Scale = Annotated[float | None, Query(ge=-LARGEST, le=LARGEST)]
Colours = Annotated[str | None, Query(max_length=40)]


def _load(context: Context, who: Visitor, digest: str) -> tuple[bytes, str, list[str] | None]:
    """The blob, if a record of the workspace names it, with the name of its target and the model's classes."""

    def allowed(conn: Any) -> Any:
        seen = select(reference.c.owner).where(
            reference.c.digest == digest,
            reference.c.workspace == who.workspace,
            reference.c.owner.startswith("explanation:"),
        )
        owner = conn.execute(seen.limit(1)).scalar()
        if owner is None:
            raise unknown("artifact", digest, [])
        ident = owner.removeprefix("explanation:")
        return conn.execute(
            select(explanation.c.target_name, explanation.c.model).where(explanation.c.id == ident)
        ).first()

    row = context.db.read(allowed)
    classes = None
    if row is not None and row.model in {m.id for m in context.models.listed()}:
        classes = context.models.find(row.model)["classes"]
    return context.blobs.get(digest), row.target_name if row else "", classes


@router.get("/artifacts/{digest}", response_model=wire.ArtifactInfo)
def describe(digest: str, context: Services, who: Reader, request: Request) -> Response:
    """Metadata, scale, sentence and table: what a page needs to show the picture with its words."""
    blob, target, classes = _load(context, who, digest)
    if (same := fresh(request, digest)) is not None:
        return same
    a = Artifact.from_bytes(blob)
    draw = renderer(a.kind)
    table = draw.table(a, classes=classes)
    body = {
        "digest": digest,
        "name": a.name,
        "kind": a.kind,
        "meta": a.meta,
        "arrays": {k: {"dtype": str(v.dtype), "shape": list(v.shape)} for k, v in a.arrays.items()},
        "legend": asdict(draw.legend(a)),
        "sentence": draw.sentence(a, target=target),
        "table": {"columns": list(table.columns), "rows": [list(r) for r in table.rows]},
        "detail": draw.detail(a),
    }
    return Response(
        orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json", headers=lasting(digest)
    )


@router.get("/artifacts/{digest}/render.png", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def render(
    digest: str,
    context: Services,
    who: Reader,
    request: Request,
    cmap: Colours = None,
    lo: Scale = None,
    hi: Scale = None,
    size: Annotated[int | None, Query(ge=16, le=2048)] = None,
    dark: bool = False,
) -> Response:
    """The drawing alone, in the caller's colours and range."""
    blob, _, _ = _load(context, who, digest)
    if (same := fresh(request, digest)) is not None:
        return same
    a = Artifact.from_bytes(blob)
    out = io.BytesIO()
    renderer(a.kind).image(a, cmap=cmap, lo=lo, hi=hi, size=size, dark=dark).save(out, "PNG", compress_level=1)
    return Response(out.getvalue(), media_type="image/png", headers=lasting(digest))


@router.get(
    "/artifacts/{digest}/raw", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
)
def raw(digest: str, context: Services, who: Reader, request: Request) -> Response:
    """The stored arrays: safetensors."""
    blob, _, _ = _load(context, who, digest)
    if (same := fresh(request, digest)) is not None:
        return same
    disposition = {"Content-Disposition": f'attachment; filename="{digest[:12]}.safetensors"'}
    return Response(
        blob,
        media_type="application/octet-stream",
        headers={**lasting(digest), **disposition},
    )


@router.get("/artifacts/{digest}/table.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def table(digest: str, context: Services, who: Reader, request: Request) -> Response:
    """The table that goes with the drawing."""
    blob, _, classes = _load(context, who, digest)
    if (same := fresh(request, digest)) is not None:
        return same
    a = Artifact.from_bytes(blob)
    found = renderer(a.kind).table(a, classes=classes)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(found.columns)
    # A spreadsheet runs what begins with = + - @: text gets a quote before it.
    writer.writerows([("'" + v if isinstance(v, str) and v[:1] in "=+-@" else v) for v in row] for row in found.rows)
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=lasting(digest))
