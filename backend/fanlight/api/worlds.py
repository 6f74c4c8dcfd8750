"""Worlds: what is known of a data set that Fanlight drew itself."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from fanlight import wire
from fanlight.api.access import Reader, Services
from fanlight.api.body import StrictRoute
from fanlight.service import worlds

router = APIRouter(route_class=StrictRoute)

PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}


@router.get("/datasets/{id}/world")
def world(id: str, context: Services, who: Reader) -> wire.World:
    """Its labels, parts and concepts, and how these hang together."""
    return worlds.of(context, who, id)


@router.get("/datasets/{id}/samples/{number}/parts.png", response_class=Response, responses=PNG)
def parts(id: str, number: int, context: Services, who: Reader, size: int = 320) -> Response:
    """A sample of a world with its visible parts in colours, numbered in the order in which the world names them."""
    blob = worlds.parts(context, who, id, number, size)
    return Response(blob, media_type="image/png", headers={"Cache-Control": "private, max-age=86400"})
