"""Saved views of the gallery."""

from __future__ import annotations

from fastapi import APIRouter

from fanlight import wire
from fanlight.api.access import Explainer, Reader, Services
from fanlight.api.body import StrictRoute
from fanlight.service import views

router = APIRouter(route_class=StrictRoute)


@router.get("/views")
def listed(context: Services, who: Reader) -> list[wire.SavedView]:
    """Yours first."""
    return views.listed(context, who)


@router.post("/views", status_code=201)
def save(request: wire.ViewRequest, context: Services, who: Explainer) -> wire.SavedView:
    """Keeps a question to the gallery under a name."""
    return views.save(context, who, request)


@router.patch("/views/{id}")
def patch(id: str, changes: wire.ViewPatch, context: Services, who: Explainer) -> wire.SavedView:
    return views.patch(context, who, id, changes)


@router.delete("/views/{id}")
def remove(id: str, context: Services, who: Explainer) -> wire.SavedView:
    """The deleted view; for a day it can be brought back."""
    return views.remove(context, who, id)


@router.post("/views/{id}/restore")
def restore(id: str, context: Services, who: Explainer) -> wire.SavedView:
    return views.restore(context, who, id)
