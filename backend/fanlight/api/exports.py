"""Files of one explanation, one address per form."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from fanlight.api.access import Reader, Services
from fanlight.drawing import page
from fanlight.drawing.sorry import sorry_page
from fanlight.errors import FanlightError
from fanlight.service import exports

router = APIRouter()

Region = Annotated[
    str | None,
    Query(
        max_length=20_000,
        description="Of a result of words: places of its maps to be marked, with what each word says inside; as in the address of its page.",
    ),
]

FILES: dict[int | str, dict[str, Any]] = {
    200: {"content": {media.partition(";")[0]: {} for media in exports.MEDIA.values() if "json" not in media}}
}


@router.get("/explanations/{id}/export.{form}", response_class=Response, responses=FILES)
def export(
    id: str, form: exports.Form, context: Services, who: Reader, request: Request, region: Region = None
) -> Response:
    """A file: report (html, pdf), figure (svg, png), numbers (csv, parquet, safetensors), citation (bib), record (json)."""
    try:
        blob = exports.export(context, who, id, form, region)
    except FanlightError as error:
        # Somebody who followed a link reads a page; a program gets the error in its one shape.
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return HTMLResponse(sorry_page(error), error.status, headers={"Content-Security-Policy": page.POLICY})
    name = f"fanlight-{id}.{form}"
    return Response(
        blob, media_type=exports.MEDIA[form], headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
