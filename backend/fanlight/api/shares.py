"""Shares: made, listed and revoked behind the gate; opened by anybody with the link, at /s/{token}."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from fanlight import wire
from fanlight.api.access import Services, Sharer
from fanlight.api.body import StrictRoute
from fanlight.drawing import page
from fanlight.errors import FanlightError, InvalidField
from fanlight.service import pictures, shares
from fanlight.service.context import Context
from fanlight.service.search import ordinal

router = APIRouter(route_class=StrictRoute)
public = APIRouter()

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Content-Security-Policy": page.POLICY,
}
VIEW = 8 * 2**10  # bytes of JSON: a page's view is a handful of numbers and names
LEVELS = 4


@router.post("/shares", status_code=201)
def create(request: wire.ShareRequest, context: Services, who: Sharer) -> wire.NewShare:
    """A link to exactly what is stored now. The token is shown once."""
    _modest(request.view)
    return shares.create(context, who, request)


@router.get("/shares")
def listed(
    context: Services,
    who: Sharer,
    explanation: Annotated[str | None, Query(description="only live shares of this record")] = None,
) -> list[wire.Share]:
    return shares.listed(context, who, of=explanation)


@router.delete("/shares/{id}")
def revoke(id: str, context: Services, who: Sharer) -> wire.Share:
    """The link is dead from now on."""
    return shares.revoke(context, who, id)


@public.get("/s/{token}", response_class=HTMLResponse)
def opened(
    token: str,
    context: Services,
    embed: Annotated[str, Query(description="1: may be shown in a frame by the pages of FANLIGHT_EMBED_PARENTS")] = "",
) -> HTMLResponse:
    """The page of a share; one and the same 404 for a token that is unknown, expired or revoked."""
    row = shares.opened(context, token, view=True)
    if row is None:
        return _gone()
    path = f"{context.settings.root_path}/s/{token}"
    return HTMLResponse(
        pictures.shared(context, row.snapshot, base=_base(context), path=path), headers=_framed(context, embed)
    )


@public.get("/s/{token}/preview.png", response_class=Response)
def preview(token: str, context: Services) -> Response:
    return _drawn(context, token, 0, "preview.png")


@public.get("/s/{token}/{n}/{name}", response_class=Response)
def picture(token: str, n: str, name: str, context: Services) -> Response:
    return _drawn(context, token, position, name) if (position := ordinal(n)) is not None else _gone()


@public.get("/s/{rest:path}", include_in_schema=False)
def nothing() -> HTMLResponse:
    """What has not the form of a share's address says no more than one that is gone."""
    return _gone()


def _framed(context: Context, embed: str) -> dict[str, str]:
    """Nobody may frame the page but, where the address asks for it, the pages that the settings name."""
    parents = context.settings.listed(context.settings.embed_parents)
    if embed != "1" or not parents:
        return HEADERS
    return {**HEADERS, "Content-Security-Policy": f"{page.IN_FILE}; frame-ancestors {' '.join(parents)}"}


def _modest(view: dict[str, Any]) -> None:
    size = len(json.dumps(view).encode())
    if size > VIEW or _levels(view) > LEVELS:
        raise InvalidField(
            f"The view of a share is at most {VIEW // 2**10} KiB of JSON, nested at most {LEVELS} levels deep.",
            code="invalid_view",
            given=f"{size} bytes, {_levels(view)} levels",
        )


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_levels, inner), default=0)


def _drawn(context: Context, token: str, n: int, name: str) -> Response:
    row = shares.opened(context, token, view=False)
    if row is None:
        return _gone()
    try:
        blob = pictures.drawn(context.blobs, row.snapshot, n, name)
    except FanlightError:
        return _gone()
    return Response(blob, media_type="image/png", headers=HEADERS)


def _gone() -> HTMLResponse:
    return HTMLResponse(page.gone_page(), 404, headers=HEADERS)


def _base(context: Context) -> str:
    s = context.settings
    return s.public_url.rstrip("/").removesuffix(s.root_path) if s.public_url else f"http://{s.host}:{s.port}"
