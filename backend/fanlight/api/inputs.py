"""Inputs: upload once, look at the stored pixels."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, File, Query, UploadFile
from fastapi.responses import Response

from fanlight import wire
from fanlight.api.access import IMMUTABLE, Services, Who
from fanlight.errors import InvalidField
from fanlight.service import inputs

router = APIRouter()


@router.post("/inputs", status_code=201)
def upload(context: Services, who: Who, file: Annotated[UploadFile, File()]) -> wire.Input:
    """A picture (PNG, JPEG, WebP, TIFF, BMP, GIF). The same content in another file is the same input."""
    return inputs.upload(context, who, (file.filename or "").encode(errors="replace").decode(), file.file.read())


@router.get("/inputs/{id}")
def one(id: str, context: Services, who: Who) -> wire.Input:
    return inputs.to_wire(context, context.db.read(lambda c: inputs.find(c, who.workspace, id)))


@router.get("/inputs/{id}/thumbnail.png", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def thumbnail(id: str, context: Services, who: Who) -> Response:
    row = context.db.read(lambda c: inputs.find(c, who.workspace, id))
    return Response(context.blobs.get(row.thumbnail), media_type="image/png", headers={"Cache-Control": IMMUTABLE})


@router.get("/inputs/{id}/image.png", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def image(
    id: str,
    context: Services,
    who: Who,
    box: Annotated[str | None, Query(max_length=100, description="x0,y0,x1,y1 in pixels of the stored picture")] = None,
    size: Annotated[int, Query(ge=1, le=inputs.MAX_SIDE, description="length of the longer side")] = 512,
) -> Response:
    row = context.db.read(lambda c: inputs.find(c, who.workspace, id))
    part = None
    if box is not None:
        try:
            x0, y0, x1, y1 = (float(v) for v in box.split(","))
        except ValueError:
            raise InvalidField("A box is four numbers: x0,y0,x1,y1.", code="invalid_box", given=box) from None
        part = (x0, y0, x1, y1)
    return Response(inputs.view(context, row, part, size), media_type="image/png", headers={"Cache-Control": IMMUTABLE})
