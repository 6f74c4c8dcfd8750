"""Trials: an intervention tried on every explanation of a sweep; what becomes of the predictions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from fanlight import wire
from fanlight.api.access import Explainer, Reader, Services, page_of
from fanlight.api.body import StrictRoute
from fanlight.service import trials

router = APIRouter(route_class=StrictRoute)

FILE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}}}}


@router.post("/sweeps/{id}/trials", status_code=201)
def create(id: str, request: wire.TrialRequest, context: Services, who: Explainer) -> wire.Trial:
    """Tries edits on what of a sweep is finished, as bulk work; no model looks at a picture again."""
    return trials.create(context, who, id, request)


@router.get("/sweeps/{id}/trials")
def of_sweep(id: str, context: Services, who: Reader) -> list[wire.Trial]:
    """Newest first, a hundred at most."""
    return trials.of_sweep(context, who, id)


@router.get("/trials/{id}")
def one(id: str, context: Services, who: Reader) -> wire.Trial:
    return trials.one(context, who, id)


@router.get("/trials/{id}/summary")
def summary(id: str, context: Services, who: Reader) -> wire.TrialSummary:
    """Accuracy before and after, with intervals, and which classes gained and lost, of what is finished."""
    return trials.summary(context, who, id)


@router.get("/trials/{id}/items")
def items(
    id: str,
    context: Services,
    who: Reader,
    move: str = "",
    state: str = "",
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    limit: int = 100,
) -> wire.Page[wire.TrialItem]:
    """The pictures in order, with the prediction before and after; `move` and `state` may be several, with commas."""
    return trials.items(context, who, id, move=move, state=state, cursor=cursor, limit=page_of(limit, "items"))


@router.get("/trials/{id}/export.csv", response_class=Response, responses=FILE)
def export(id: str, context: Services, who: Reader) -> Response:
    """Every picture with its prediction before and after."""
    headers = {"Content-Disposition": f'attachment; filename="fanlight-trial-{id}.csv"'}
    return Response(trials.export(context, who, id), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/trials/{id}/cancel")
def cancel(id: str, context: Services, who: Explainer) -> wire.Trial:
    """Ends it; what is finished stays. Only who asked for it can."""
    return trials.cancel(context, who, id)


@router.delete("/trials/{id}")
def remove(id: str, context: Services, who: Explainer) -> wire.Deleted:
    """Forgets a trial that is over; the explanations stay."""
    return trials.remove(context, who, id)
