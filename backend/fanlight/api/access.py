"""What every router needs: the services and the visitor."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from fanlight.api.gate import visitor
from fanlight.errors import InvalidField, shorten
from fanlight.service.context import Context, Visitor


def _context(request: Request) -> Context:
    found: Context = request.app.state.context
    return found


def _visitor(request: Request) -> Visitor:
    return visitor(request.scope)


async def known_query(request: Request) -> None:
    """Refuses a query parameter that the address does not have: a misspelt filter would look like an answer to it."""
    route = request.scope["route"]
    if not request.url.query or not isinstance(route, APIRoute):
        return
    known = [p.alias for p in route.dependant.query_params]
    strange = next((name for name in request.query_params if name not in known), None)
    if strange is not None:
        raise InvalidField(
            f"There is no parameter “{shorten(strange)}” at this address.",
            code="invalid_request",
            given=shorten(strange),
            allowed=sorted(known),
            hint="docs/api.md lists the parameters of each address.",
        )


Services = Annotated[Context, Depends(_context)]
Who = Annotated[Visitor, Depends(_visitor)]

IMMUTABLE = "private, max-age=31536000, immutable"

TAG = re.compile(r'(?:W/)?"([^"]*)"')  # RFC 9110, 13.1.2: compared weakly


def lasting(digest: str) -> dict[str, str]:
    """Headers of what never changes at its address."""
    return {"ETag": f'"{digest}"', "Cache-Control": IMMUTABLE}


def fresh(request: Request, digest: str) -> Response | None:
    """304 where the caller has it already. Call it only once the caller may have it."""
    given = ",".join(request.headers.getlist("if-none-match"))
    if given.strip() == "*" or digest in TAG.findall(given):
        return Response(status_code=304, headers=lasting(digest))
    return None
