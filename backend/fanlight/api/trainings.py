"""Trainings: how far recipes are that run beside the server."""

from __future__ import annotations

from fastapi import APIRouter

from fanlight import wire
from fanlight.api.access import Operator, Services
from fanlight.api.body import StrictRoute
from fanlight.service import trainings

router = APIRouter(route_class=StrictRoute)


@router.get("/trainings")
def listed(context: Services, _: Operator) -> list[wire.Training]:
    """Those with a log in FANLIGHT_TRAININGS, newest first; for who runs the server."""
    return trainings.listed(context)
