"""What every router needs: the services and the visitor."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from fanlight.api.gate import visitor
from fanlight.service.context import Context, Visitor


def _context(request: Request) -> Context:
    found: Context = request.app.state.context
    return found


def _visitor(request: Request) -> Visitor:
    return visitor(request.scope)


Services = Annotated[Context, Depends(_context)]
Who = Annotated[Visitor, Depends(_visitor)]

IMMUTABLE = "private, max-age=31536000, immutable"
