"""Sweeps: ask for one, watch it, pause and end it; what it found, and files of that."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from fanlight import wire
from fanlight.api.access import Explainer, Reader, Services, page_of
from fanlight.api.body import StrictRoute
from fanlight.api.overload import idle
from fanlight.drawing import sweep_page
from fanlight.service import sensible, studies_table, sweeps, sweeps_export

router = APIRouter(route_class=StrictRoute)

PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}
FILES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}, "text/html": {}}}}
CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}}}}
Cursor = Annotated[str | None, Query(max_length=300)]
Wait = Annotated[float, Query(ge=0, le=30, description="Seconds to wait for a summary that is being made.")]


@router.post("/sweeps", status_code=201)
async def create(request: wire.SweepRequest, context: Services, who: Explainer) -> wire.Sweep:
    """One method on one model over many pictures, as bulk work; it survives a crash of the server."""
    await sensible.lists(context, request)
    return await asyncio.to_thread(sweeps.create, context, who, request)


@router.get("/sweeps")
def listed(context: Services, who: Reader, cursor: Cursor = None, limit: int = 24) -> wire.Page[wire.Sweep]:
    """Newest first."""
    return sweeps.listed(context, who, cursor=cursor, limit=page_of(limit, "items"))


@router.get("/sweeps/{id}")
def one(id: str, context: Services, who: Reader) -> wire.Sweep:
    return sweeps.one(context, who, id)


@router.post("/sweeps/{id}/pause")
def pause(id: str, context: Services, who: Explainer) -> wire.Sweep:
    """What is being computed is finished; nothing further begins. Only who asked for it can."""
    return sweeps.pause(context, who, id)


@router.post("/sweeps/{id}/resume")
def resume(id: str, context: Services, who: Explainer) -> wire.Sweep:
    return sweeps.resume(context, who, id)


@router.post("/sweeps/{id}/cancel")
def cancel(id: str, context: Services, who: Explainer) -> wire.Sweep:
    """Ends it; what is finished stays."""
    return sweeps.cancel(context, who, id)


@router.delete("/sweeps/{id}")
def remove(id: str, context: Services, who: Explainer) -> wire.Deleted:
    """Forgets a sweep that is over; its explanations stay."""
    return sweeps.remove(context, who, id)


@router.get("/sweeps/{id}/items")
def items(
    id: str, context: Services, who: Reader, state: str = "", cursor: Cursor = None, limit: int = 100
) -> wire.Page[wire.SweepItem]:
    """The pictures in order, with what came of each; `state` may be several, with commas."""
    return sweeps.items(context, who, id, states=state, cursor=cursor, limit=page_of(limit, "items"))


@router.get("/sweeps/{id}/summary")
async def summary(id: str, context: Services, who: Reader, wait: Wait = 0.0) -> wire.SweepSummary:
    """What is known so far: accuracy, faithfulness, groups of maps. `current` is false where a newer one is being made."""
    if wait:
        idle()
    return await context.summaries.answer(who, id, wait)


@router.get("/sweeps/{id}/clusters/{number}/{name}.png", response_class=Response, responses=PNG)
def cluster(
    id: str,
    number: int,
    name: Literal["picture", "map"],
    context: Services,
    who: Reader,
    content: Annotated[str, Query(max_length=64, description="Of the summary: another one, another address.")] = "",  # noqa: ARG001
) -> Response:
    """The mean picture or the mean map of a group of the summary."""
    blob = context.summaries.picture(who, id, number, name)
    return Response(blob, media_type="image/png", headers={"Cache-Control": "private, max-age=60"})


@router.get("/sweeps/{id}/study")
def study(
    id: str,
    context: Services,
    who: Reader,
    column: Annotated[str, Query(max_length=40)] = "interaction",
    rule: studies_table.Rule = "min",
) -> wire.Study:
    """Of a sweep over lists of words: one number for every pair so far, with intervals, and normalised over the table."""
    return studies_table.table(context, who, id, column, rule)


@router.get("/sweeps/{id}/study.csv", response_class=Response, responses=CSV)
def study_file(id: str, context: Services, who: Reader, rule: studies_table.Rule = "min") -> Response:
    """Every picture of it as a file."""
    headers = {"Content-Disposition": f'attachment; filename="fanlight-study-{id}.csv"'}
    return Response(
        studies_table.export(context, who, id, rule), media_type=sweeps_export.MEDIA["csv"], headers=headers
    )


@router.get("/sweeps/{id}/export.{form}", response_class=Response, responses=FILES)
async def export(id: str, form: sweeps_export.Form, context: Services, who: Reader) -> Response:
    """A file: every item (csv, json) or the summary to read and keep (html)."""
    if form == "html":
        await context.summaries.answer(who, id, 30.0)
    blob = await asyncio.to_thread(sweeps_export.export, context, who, id, form)
    headers = {"Content-Disposition": f'attachment; filename="fanlight-sweep-{id}.{form}"'}
    if form == "html":
        return HTMLResponse(blob, headers={**headers, "Content-Security-Policy": sweep_page.POLICY})
    return Response(blob, media_type=sweeps_export.MEDIA[form], headers=headers)
