"""Derivations: models made of models, as jobs."""

from __future__ import annotations

from fastapi import APIRouter

from fanlight import wire
from fanlight.api.access import Admin, Reader, Services
from fanlight.api.body import StrictRoute

router = APIRouter(route_class=StrictRoute)


@router.post("/models/{id}/derivations", status_code=202)
async def create(id: str, request: wire.DerivationRequest, context: Services, who: Admin) -> wire.Derivation:
    """A change of a model for good, in a process of its own; its result is a model of its own, and the original stays."""
    return await context.derivations.create(who, id, request)


@router.get("/derivations")
def listed(context: Services, who: Reader) -> list[wire.Derivation]:
    """Newest first."""
    return context.derivations.listed(who)


@router.get("/derivations/{id}")
def one(id: str, context: Services, who: Reader) -> wire.Derivation:
    """How far it is; when it is done, the new model and accuracy before and after."""
    return context.derivations.one(who, id)


@router.delete("/derivations/{id}")
async def cancel(id: str, context: Services, who: Admin) -> wire.Derivation:
    """Ends one that is waiting or running."""
    return await context.derivations.cancel(who, id)
