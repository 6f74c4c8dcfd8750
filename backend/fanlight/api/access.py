"""What every router needs: the services and the visitor."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.responses import Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer, SecurityScopes

from fanlight.api.gate import visitor
from fanlight.errors import Forbidden, InvalidField, shorten
from fanlight.service.context import DECLARED, Context, Visitor
from fanlight.service.entry import homeless


# What waits for nothing is a coroutine: FastAPI takes a plain function to a thread, which costs more than these do.
async def _context(request: Request) -> Context:
    found: Context = request.app.state.context
    return found


_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="The access token, or an API key.")


async def _visitor(request: Request, wanted: SecurityScopes, _: Annotated[object, Security(_bearer)]) -> Visitor:
    """Who asks, if they may do what the operation declares."""
    who = visitor(request.scope)
    lacking = [scope for scope in wanted.scopes if not who.may(scope)]
    if lacking and who.name and not who.workspace and lacking[0] != "operate":
        raise homeless(who)
    if lacking:
        role = "An owner of the workspace can give you another role." if who.workspace else None
        raise Forbidden(
            f"{'Your role here' if who.name else 'This key'} may not do that: it lacks the scope “{lacking[0]}”.",
            code="scope",
            given=sorted(who.scopes),
            allowed=wanted.scopes,
            hint=role if who.name else "`fanlight keys create` makes one that may.",
        )
    return who


async def scoped(request: Request) -> None:
    """Refuses what no scope was declared for, whoever asks: an operation is closed until somebody says who may use it."""
    route = request.scope["route"]
    declared = (d for d in getattr(route, "dependant", Dependant()).dependencies if d.call is _visitor)
    if not any(set(d.own_oauth_scopes or ()) & set(DECLARED) for d in declared):
        raise Forbidden("This operation is open to nobody: it declares no scope.", code="scope")


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
Reader = Annotated[Visitor, Security(_visitor, scopes=["read"])]
Explainer = Annotated[Visitor, Security(_visitor, scopes=["explain"])]
Sharer = Annotated[Visitor, Security(_visitor, scopes=["share"])]
Admin = Annotated[Visitor, Security(_visitor, scopes=["admin"])]
Self = Annotated[Visitor, Security(_visitor, scopes=["self"])]
Operator = Annotated[Visitor, Security(_visitor, scopes=["operate"])]

PAGE = 200


def page_of(limit: int, what: str) -> int:
    """The length of a page that is asked for. Errors: invalid_limit."""
    if not 1 <= limit <= PAGE:
        raise InvalidField(f"A page has 1 to {PAGE} {what}.", code="invalid_limit", given=limit, allowed=[1, PAGE])
    return limit


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
