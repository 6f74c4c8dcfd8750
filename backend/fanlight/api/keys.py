"""API keys and the audit log: for whoever runs the server."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fanlight import wire
from fanlight.api.access import Admin, Services
from fanlight.api.body import StrictRoute
from fanlight.errors import InvalidField
from fanlight.service import admission
from fanlight.service.search import ordinal

router = APIRouter(route_class=StrictRoute)


@router.post("/keys", status_code=201)
def create(request: wire.KeyRequest, context: Services, who: Admin) -> wire.NewKey:
    """A key for a program. It is shown once."""
    return admission.create(context, who, request)


@router.get("/keys")
def listed(context: Services, who: Admin) -> list[wire.Key]:
    return admission.listed(context, who)


@router.delete("/keys/{id}")
def revoke(id: str, context: Services, who: Admin) -> wire.Key:
    """The key opens nothing from now on."""
    return admission.revoke(context, who, id)


@router.get("/audit")
def audit(
    context: Services,
    who: Admin,
    action: Annotated[str, Query(max_length=64, description="the beginning of an action, such as share")] = "",
    subject: Annotated[str, Query(max_length=128, description="the id of a record")] = "",
    by: Annotated[
        str, Query(max_length=64, alias="who", description="a person's name, or a principal such as key:ID")
    ] = "",
    cursor: Annotated[str | None, Query(max_length=40)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> wire.Page[wire.AuditEntry]:
    """Who did what to which record, newest first."""
    before = None if cursor is None else ordinal(cursor)
    if cursor is not None and before is None:
        raise InvalidField("This cursor is none of this list.", code="invalid_cursor", given=cursor)
    return admission.entries(context, who, before=before, limit=limit, action=action, subject=subject, who=by)
