"""How the server is: for load balancers, for Prometheus."""

from __future__ import annotations

import contextlib
import shutil

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from sqlalchemy import Connection, func, select, text

from fanlight import meters
from fanlight.api.access import Reader, Services
from fanlight.errors import FanlightError, Forbidden, Unavailable
from fanlight.service.context import WORKSPACE, Context
from fanlight.store import sight
from fanlight.store.database import now
from fanlight.store.ledger import OPEN
from fanlight.store.tables import job

router = APIRouter()

LEAST_FREE = 0.02  # share of the disk


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request) -> JSONResponse:
    """Everything that a request needs is there: database, store, engine, models, disk."""
    context: Context = request.app.state.context
    problems: dict[str, str] = {}
    health = await context.engine.health()
    if not health.ready:
        problems["engine"] = "starting"
    if not context.models.ready.is_set():
        problems["models"] = "loading"
    try:
        await context.db.aread(lambda c: c.execute(text("select 1")).scalar())
    except FanlightError as e:
        problems["database"] = e.message
    folder = context.settings.data_dir
    if folder.exists():
        usage = shutil.disk_usage(folder)
        if usage.free < LEAST_FREE * usage.total:
            problems["disk"] = f"{usage.free // 2**20} MiB free"
    return JSONResponse({"ready": not problems, **problems}, 200 if not problems else 503)


@router.get("/metrics", response_class=Response)
async def metrics(context: Services, who: Reader) -> Response:
    """Prometheus text, of the whole server: for its own workspace and for operators. What needs the database is left out, and counted as an
    error, while that is away."""
    if who.workspace != WORKSPACE and not who.operator:
        raise Forbidden("What the whole server does is for those who run it.", code="scope", given=who.workspace)
    health = await context.engine.health()
    registry = CollectorRegistry()
    with contextlib.suppress(Unavailable), sight.upkeep():
        await context.db.aread(lambda c: _queue(c, registry))
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(context.settings.data_dir).free
        Gauge("fanlight_disk_free_bytes", "Room where the data folder is", registry=registry).set(free)
    for name, doc, value in (
        ("fanlight_engine_ready", "1 where the compute worker is ready", health.ready),
        ("fanlight_engine_queued", "Work waiting in the compute worker", health.queued),
        ("fanlight_engine_running", "Work begun in the compute worker", health.running),
        ("fanlight_engine_longest_step_seconds", "Longest step so far", health.detail.get("longest_step", 0)),
        ("fanlight_throughput_forwards", "Forward passes per second", context.dispatcher.throughput),
        ("fanlight_streams", "Open event streams", context.bus.streams),
    ):
        Gauge(name, doc, registry=registry).set(float(value))
    return Response(generate_latest(registry) + generate_latest(meters.REGISTRY), media_type=CONTENT_TYPE_LATEST)


def _queue(conn: Connection, registry: CollectorRegistry) -> None:
    """Jobs by kind and state; of the waiting ones their work, and how long the oldest waits."""
    jobs = Gauge("fanlight_jobs", "Jobs by kind and state", ["kind", "state"], registry=registry)
    cost = Gauge("fanlight_queue_cost_forwards", "Forward passes of unfinished jobs", ["kind"], registry=registry)
    oldest = Gauge("fanlight_queue_oldest_seconds", "Age of the oldest unfinished job", ["kind"], registry=registry)
    for row in conn.execute(select(job.c.kind, job.c.state, func.count().label("n")).group_by(job.c.kind, job.c.state)):
        jobs.labels(row.kind, row.state).set(row.n)
    unfinished = select(job.c.kind, func.sum(job.c.cost).label("cost"), func.min(job.c.created).label("first"))
    t = now(conn)
    for row in conn.execute(unfinished.where(job.c.state.in_(OPEN)).group_by(job.c.kind)):
        cost.labels(row.kind).set(float(row.cost))
        oldest.labels(row.kind).set(max(0.0, (t - row.first) / 1e6))
