"""Explanations: ask, read, search, annotate, delete, recompute; their trust, their pictures, their jobs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from sqlalchemy import Connection, select

from fanlight import wire
from fanlight.api.access import Explainer, Reader, Services, page_of
from fanlight.api.body import StrictRoute
from fanlight.api.overload import idle
from fanlight.errors import unknown
from fanlight.service import chances, checks, explain, interventions, pictures, records, search, sensible
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import Promise
from fanlight.store import ledger
from fanlight.store.tables import job

router = APIRouter(route_class=StrictRoute)

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": wire.Accepted, "description": "Promised; survives a crash of the server."}
}
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}
Wait = Annotated[float, Query(ge=0, le=30, description="Seconds to wait for the result before answering 202.")]


def read(context: Context, who: Visitor, ident: str) -> wire.Explanation:
    def act(conn: Any) -> wire.Explanation:
        row = explain.find(conn, who.workspace, ident)
        return records.explanation_wire(context, row, records.tags_of(conn, [ident])[ident])

    return context.db.read(act)


async def _answer(context: Context, who: Visitor, promise: Promise, wait: float) -> Response:
    """200 with the record where it is over within `wait` seconds, else 202."""
    if promise.state in ledger.OPEN and wait > 0:
        idle()
        await context.dispatcher.ended(promise.id, wait)
    record = await asyncio.to_thread(read, context, who, promise.id)
    if record.state in ledger.OPEN:
        body = wire.Accepted(id=record.id, job=record.job or "", state=record.state)
        location = f"{context.settings.root_path}/api/v1/jobs/{record.job}"
        return Response(body.model_dump_json(), 202, {"Location": location}, "application/json")
    return Response(record.model_dump_json(), 200, media_type="application/json")


@router.post("/explanations", responses=ACCEPTED, response_model=wire.Explanation)
async def ask(request: wire.ExplanationRequest, context: Services, who: Explainer, wait: Wait = 0.0) -> Response:
    """The stored explanation where there is one, else a promise. Equal requests share one computation. What would fail by its words is refused."""
    await sensible.explanation(context, who, request)
    promise = await asyncio.to_thread(explain.submit, context, who, request)
    return await _answer(context, who, promise, wait)


@router.post(
    "/interventions", responses={**ACCEPTED, 201: {"model": wire.Explanation}}, response_model=wire.Explanation
)
async def intervene(request: wire.InterventionRequest, context: Services, who: Explainer, wait: Wait = 0.0) -> Response:
    """A new explanation whose parent is the given one, with the whole list of edits."""
    await sensible.change(context, who, request)
    promise = await asyncio.to_thread(interventions.intervene, context, who, request)
    answer = await _answer(context, who, promise, wait)
    answer.status_code = 201 if answer.status_code == 200 else answer.status_code
    return answer


@router.post("/live", response_model=wire.LivePanel)
async def live(request: wire.LiveRequest, context: Services, who: Explainer) -> wire.LivePanel:
    """The panel after the edits, from frozen artifacts; nothing is stored. Of a session only the latest `seq` is answered."""
    idle()  # people who drag wait for each other in a line of their own, where what is overtaken leaves
    return await context.live.answer(who, request)


@router.post("/explanations/{id}/probabilities")
async def probabilities(id: str, request: wire.ChancesRequest, context: Services, who: Explainer) -> wire.Chances:
    """How probable the measured words of a result are, and the edit that weighs them so. Nothing is changed or stored."""
    return await chances.of(context, who, id, request)


@router.get("/explanations")
def listed(
    context: Services,
    who: Reader,
    q: Annotated[str | None, Query(max_length=200)] = None,
    model: str | None = None,
    explainer: str | None = None,
    family: str | None = None,
    input: str | None = None,
    dataset: str | None = None,
    class_: Annotated[str | None, Query(alias="class")] = None,
    outcome: str | None = None,
    trust: str | None = None,
    state: str | None = None,
    parent: str | None = None,
    sweep: str | None = None,
    tag: str | None = None,
    owner: str | None = None,
    sort: str = "newest",
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    limit: int = 48,
) -> wire.Page[wire.Explanation]:
    """A page of the gallery with counts per filter; `state` may be several, with commas. Sorts: newest, oldest, faithfulness, probability."""
    given = {
        "model": model, "explainer": explainer, "family": family, "input": input, "dataset": dataset, "class": class_,
        "outcome": outcome, "trust": trust, "state": state, "parent": parent, "sweep": sweep,
    }  # fmt: skip
    equal = {k: v for k, v in given.items() if v}
    return search.page(
        context, who, search.Query(equal, q=q, tag=tag, owner=owner, sort=sort, cursor=cursor, limit=limit)
    )


@router.get("/explanations/{id}")
def one(id: str, context: Services, who: Reader) -> wire.Explanation:
    return read(context, who, id)


@router.patch("/explanations/{id}")
def patch(id: str, changes: wire.ExplanationPatch, context: Services, who: Explainer) -> wire.Explanation:
    explain.patch(context, who, id, changes)
    return read(context, who, id)


@router.delete("/explanations/{id}")
def delete(id: str, context: Services, who: Explainer) -> wire.Deleted:
    """Deletes the record and revokes its live shares, which the answer names."""
    return explain.remove(context, who, id)


@router.post("/explanations/{id}/recompute", responses=ACCEPTED, response_model=wire.Explanation)
async def recompute(id: str, context: Services, who: Explainer, wait: Wait = 0.0) -> Response:
    """Computes it again; the new record says how its numbers compare and supersedes the old one."""
    promise = await asyncio.to_thread(explain.recompute, context, who, id)
    return await _answer(context, who, promise, wait)


@router.get("/explanations/{id}/trust")
def trust(id: str, context: Services, who: Reader) -> wire.Trust:
    return read(context, who, id).trust


@router.post("/explanations/{id}/trust", responses={202: {"model": wire.Trust}}, response_model=wire.Trust)
def measure(id: str, context: Services, who: Explainer, wanted: wire.TrustRequest | None = None) -> JSONResponse:
    """Measures how faithful the map is, and what is named beyond that. 202 while it is computed.

    Insertion and deletion share their forward passes and are always measured together; `measures` without them measures only the further
    ones that it names. What is there already is not measured again.
    """
    waiting = checks.ask(context, who, id, wanted.measures if wanted else None)
    return JSONResponse(read(context, who, id).trust.model_dump(mode="json"), 202 if waiting else 200)


@router.get("/explanations/{id}/trust/measures")
def measures(id: str, context: Services, who: Reader) -> list[wire.Measure]:
    """What can be measured further, and what it will cost."""
    return checks.offered(context, who, id)


@router.get("/explanations/{id}/card.png", response_class=Response, responses=PNG)
def card(id: str, context: Services, who: Reader) -> Response:
    """The picture beside its map, for lists."""
    return _png(pictures.card(context, who, id))


@router.get("/explanations/{id}/overlay.png", response_class=Response, responses=PNG)
def overlay(id: str, context: Services, who: Reader, size: Annotated[int, Query(ge=16, le=2048)] = 768) -> Response:
    """The map over its picture, on one scale."""
    return _png(pictures.overlay(context, who, id, size))


@router.get("/explanations/{id}/preview.png", response_class=Response, responses=PNG)
def preview(id: str, context: Services, who: Reader) -> Response:
    return _png(pictures.social(context, who, id))


@router.get("/jobs")
def jobs(
    context: Services,
    who: Reader,
    state: str | None = None,
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    limit: int = 100,
) -> wire.Page[wire.Job]:
    """Jobs, newest first."""
    page_of(limit, "jobs")
    states = search.states(state or "")
    before = search.position(cursor) if cursor else None

    def act(conn: Any) -> wire.Page[wire.Job]:
        where = [job.c.workspace == who.workspace]
        if states:
            where.append(job.c.state.in_(states))
        total = search.counted(conn, select(job.c.id).where(*where))
        if before is not None:
            where.append(job.c.created < before)
        rows = list(conn.execute(select(job).where(*where).order_by(job.c.created.desc()).limit(limit + 1)))
        more = len(rows) > limit
        return wire.Page[wire.Job](
            items=[records.job_wire(context, conn, r, who.principal) for r in rows[:limit]],
            next_cursor=str(rows[limit - 1].created) if more else None,
            total=min(total, search.EXACT),
            total_is_floor=total > search.EXACT,
        )

    return context.db.read(act)


@router.get("/jobs/{id}")
def one_job(id: str, context: Services, who: Reader) -> wire.Job:
    def act(conn: Any) -> wire.Job:
        row = records.job_row(conn, who.workspace, id)
        if row is None:
            raise unknown("job", id, [])
        return records.job_wire(context, conn, row, who.principal)

    return context.db.read(act)


@router.delete("/jobs/{id}")
def cancel(id: str, context: Services, who: Explainer) -> wire.Job:
    """Leaves the job; it stops when nobody waits for it any more. Only those who asked for it can."""

    def act(conn: Connection) -> bool:
        alone = ledger.cancel(conn, who.workspace, id, who.principal)
        who.did(conn, "job.cancel", id, stopped=alone)
        return alone

    if context.db.write(act):
        context.dispatcher.stop(id)
    return one_job(id, context, who)


def _png(blob: bytes) -> Response:
    # A record's drawing changes only when its trust arrives or the program changes: cached for a minute.
    return Response(blob, media_type="image/png", headers={"Cache-Control": "private, max-age=60"})
