"""A server without API and pages: it takes jobs from the ledger and computes them. For machines with devices beside those that answer people.

It is the application of `fanlight serve`, of which only the answers to health checks are left, and of whose tasks only those that compute.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from sqlalchemy.engine import make_url
from starlette.types import ASGIApp, Receive, Scope, Send

from fanlight import __version__, collector, logs
from fanlight.app import DRAIN, create
from fanlight.errors import FanlightError, NotFound
from fanlight.service.context import Context
from fanlight.settings import Settings
from fanlight.store import sight
from fanlight.store.news import Listener

log = structlog.get_logger()
ANSWERED = ("/healthz", "/readyz", "/metrics")


class Only:
    """Leaves of an application what is asked at these paths. Args: app; paths."""

    def __init__(self, app: ASGIApp, paths: tuple[str, ...]):
        self.app, self.paths = app, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self.paths:
            allowed = list(self.paths)
            error = NotFound("This is a worker; it has no API.", code="not_found", given=scope["path"], allowed=allowed)
            await JSONResponse(error.body(), error.status)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def worker(settings: Settings) -> FastAPI:
    """The application. Raises where the database is one that only a single server may use."""
    if make_url(settings.database).get_backend_name() == "sqlite":
        raise FanlightError(
            "A SQLite database belongs to one server, so no worker can take jobs from it.",
            code="worker_database",
            hint="Set FANLIGHT_DATABASE_URL to the PostgreSQL of the servers, and FANLIGHT_ARTIFACTS_URL to their store.",
        )
    app = create(settings, pages=False)
    app.router.lifespan_context = _lifespan
    app.add_middleware(Only, paths=ANSWERED)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    with sight.server():
        async with _working(app.state.context):
            yield


@contextlib.asynccontextmanager
async def _working(context: Context) -> AsyncIterator[None]:
    context.bus.start()
    await context.engine.start()
    listener = Listener(context.db.url, context.db.name, context.dispatcher.hear)
    starting = asyncio.create_task(_take(context, listener))
    collector.settle()
    try:
        yield
    finally:
        log.info("draining")
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await asyncio.to_thread(listener.close)
        await context.dispatcher.drain(DRAIN)
        await context.engine.close()
        context.db.close()
        log.info("drained")


async def _take(context: Context, listener: Listener) -> None:
    """Takes jobs once the models are known, whose names the results are written down with."""
    try:
        await context.models.register()
    except FanlightError as e:
        log.error("not every model could be registered", problem=e.message)
    await context.dispatcher.start()
    listener.start()


def work(settings: Settings) -> int:
    """Runs a worker until it is told to stop. Returns an exit code."""
    logs.configure(settings.log_level, [settings.token])
    if not settings.loopback and not settings.token:
        raise FanlightError(
            f"{settings.host} is reachable by others and no authentication is configured.",
            code="no_token",
            hint="Set FANLIGHT_TOKEN to that of the servers, or bind 127.0.0.1.",
        )
    app = worker(settings)
    log.info("worker", version=__version__, health=f"http://{settings.host}:{settings.port}/readyz")
    config = uvicorn.Config(
        app, host=settings.host, port=settings.port, log_config=None, access_log=False, proxy_headers=False, server_header=False, ws="none",
        timeout_graceful_shutdown=int(DRAIN) + 5,
    )  # fmt: skip
    uvicorn.Server(config).run()
    return 0
