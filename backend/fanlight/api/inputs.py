"""Inputs: upload once, look at the stored pixels."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, File, Query, Request, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError

from fanlight import wire
from fanlight.api.access import Explainer, Reader, Services, fresh, lasting
from fanlight.api.body import StrictRoute
from fanlight.errors import InvalidField, TooLarge
from fanlight.service import inputs, prompts

router = APIRouter(route_class=StrictRoute)

Part = Annotated[str | None, Query(max_length=100, description="x0,y0,x1,y1 in pixels of the stored picture")]
PROMPTS = 64 * 2**10  # bytes of a body that is no file
BODIES = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": {"required": ["file"]}},
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["kind", "value"],
                    "additionalProperties": False,
                    "properties": {
                        "kind": {"const": "prompt"},
                        "value": {"anyOf": [{"type": "string", "maxLength": 2000}, wire.Prompt.model_json_schema()]},
                    },
                }
            },
        },
    }
}
"""Two bodies for one address, which the framework's signature cannot say."""
Size = Annotated[int, Query(ge=1, le=inputs.MAX_SIDE, description="length of the longer side")]


@router.post("/inputs", status_code=201, openapi_extra=BODIES)
async def upload(
    context: Services, who: Explainer, request: Request, file: Annotated[UploadFile | None, File()] = None
) -> wire.Input:
    """A picture (PNG, JPEG, WebP, TIFF, BMP, GIF) as a file of a form, or as JSON what is no file: a prompt. The same content is the same input."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
        if len(await request.body()) > PROMPTS:
            raise TooLarge("A prompt is at most 2,000 letters long.", given=len(await request.body()), allowed=PROMPTS)
        asked = _new(await request.json())
        return await run_in_threadpool(prompts.register, context, who, asked.value)
    if file is None:
        raise InvalidField(
            "There is no file in the request.",
            code="no_file",
            allowed=[
                "multipart/form-data with the field file",
                'application/json with {"kind": "prompt", "value": "..."}',
            ],
        )
    name = (file.filename or "").encode(errors="replace").decode()
    made = await run_in_threadpool(lambda: inputs.upload(context, who, name, file.file.read()))
    if who.person:
        context.foresight.uploaded(who, made.id)
    return made


def _new(body: Any) -> wire.NewInput:
    try:
        return wire.NewInput.model_validate(body)
    except ValidationError as e:
        raise RequestValidationError(e.errors(include_url=False)) from None


@router.get("/inputs/{id}")
def one(id: str, context: Services, who: Reader) -> wire.Input:
    return inputs.to_wire(context, context.db.read(lambda c: inputs.find(c, who.workspace, id)))


@router.get("/inputs/{id}/thumbnail.png", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def thumbnail(id: str, context: Services, who: Reader, request: Request) -> Response:
    row = context.db.read(lambda c: inputs.find(c, who.workspace, id))
    return fresh(request, id) or _picture(inputs.thumbnail(context, row), "png", id)


@router.get("/inputs/{id}/thumbnail.webp", response_class=Response, responses={200: {"content": {"image/webp": {}}}})
def thumbnail_webp(id: str, context: Services, who: Reader, request: Request) -> Response:
    """The thumbnail at a tenth of the bytes."""
    row = context.db.read(lambda c: inputs.find(c, who.workspace, id))
    return fresh(request, id) or _picture(inputs.thumbnail_webp(context, row), "webp", id)


@router.get("/inputs/{id}/image.png", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def image(id: str, context: Services, who: Reader, request: Request, box: Part = None, size: Size = 512) -> Response:
    """The stored pixels, exactly where `size` is that of the part."""
    row, part = context.db.read(lambda c: inputs.find(c, who.workspace, id)), _box(box)
    return fresh(request, id) or _picture(inputs.view(context, row, part, size), "png", id)


@router.get("/inputs/{id}/image.jpg", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
def image_jpeg(
    id: str, context: Services, who: Reader, request: Request, box: Part = None, size: Size = 512
) -> Response:
    """The same for looking at: JPEG, `size` at most, never enlarged."""
    row, part = context.db.read(lambda c: inputs.find(c, who.workspace, id)), _box(box)
    return fresh(request, id) or _picture(inputs.view(context, row, part, size, exact=False), "jpeg", id)


def _box(given: str | None) -> inputs.Box | None:
    if given is None:
        return None
    try:
        x0, y0, x1, y1 = (float(v) for v in given.split(","))
    except ValueError:
        raise InvalidField("A box is four numbers: x0,y0,x1,y1.", code="invalid_box", given=given) from None
    return x0, y0, x1, y1


def _picture(blob: bytes, kind: str, id: str) -> Response:
    return Response(blob, media_type=f"image/{kind}", headers=lasting(id))
