"""Puts the parts together: gate, API, share page, pages, dispatcher; one process, one origin."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import httpx
import structlog
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from obstore.exceptions import BaseError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from starlette.routing import Match

from fanlight import __version__, collector, logs
from fanlight.api import (
    artifacts,
    catalog,
    comparisons,
    derivations,
    events,
    explanations,
    exports,
    health,
    inputs,
    keys,
    people,
    shapes,
    shares,
    sso,
    sweeps,
    trainings,
    trials,
    views,
    worlds,
)
from fanlight.api.access import known_query, scoped
from fanlight.api.gate import LOCAL, Door, Gate
from fanlight.api.overload import Overload
from fanlight.api.watch import Route, Watch
from fanlight.blobs import Blobs
from fanlight.client import AsyncClient
from fanlight.engine.base import Engine
from fanlight.errors import FanlightError, NotFound
from fanlight.service import datasets, examples, identities, listing, retention
from fanlight.service.context import Context
from fanlight.service.derivations import Derivations
from fanlight.service.dispatch import Dispatcher
from fanlight.service.entry import Entry
from fanlight.service.examinations import Examinations
from fanlight.service.field_guide import offer as field_guide
from fanlight.service.foresight import Foresight
from fanlight.service.live import Live
from fanlight.service.models import Models
from fanlight.service.shelf import Reading
from fanlight.service.sweeps_run import Sweeper
from fanlight.service.sweeps_summary import Summaries
from fanlight.service.trials_run import Trier
from fanlight.settings import Settings
from fanlight.store import sight
from fanlight.store.database import Database
from fanlight.store.migrate import upgrade
from fanlight.store.news import Listener

log = structlog.get_logger()
METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
DRAIN = 10.0  # seconds for what runs at a polite end; the rest goes back to the queue


def engine(settings: Settings, blobs: Blobs) -> Engine:
    """The engine that the settings ask for. Only an engine in this process brings torch into it."""
    config = {
        "artifacts": settings.artifacts,
        "device": settings.device,
        "threads": settings.threads,
        "memory_mb": settings.memory_mb,
        "device_memory_mb": settings.device_memory_mb,
        "word_model": "" if settings.word_model is None else str(settings.word_model.resolve()),
        "explainers": tuple(Settings.listed(settings.explainers)),
    }
    if settings.engine == "ray":
        from fanlight.engine.cluster import planned
        from fanlight.engine.ray import RayEngine

        plan = planned(settings)
        return RayEngine({**config, "threads": int(plan.cpus)}, plan)
    if settings.engine == "local" and settings.isolate:
        from fanlight.engine.local import ProcessEngine

        return ProcessEngine(config, step_timeout=settings.step_timeout)

    from fanlight.engine.local import PATIENT

    os.environ.update({k: v for k, v in PATIENT.items() if k not in os.environ})  # read when torch is first imported
    from fanlight.engine.execute import Config, Execution

    def make() -> Execution:
        return Execution(Config(**config), blobs)  # type: ignore[arg-type]

    if settings.engine == "inline":
        from fanlight.engine.inline import InlineEngine

        return InlineEngine(make)
    from fanlight.engine.local import ThreadEngine

    return ThreadEngine(make)


def create(settings: Settings, *, token: str | None = None, pages: bool = True) -> FastAPI:
    """The application. Args: token: default from the settings or the data folder; pages: mount the Dash pages."""
    settings.data_dir.mkdir(0o700, parents=True, exist_ok=True)
    token = token or access_token(settings)
    provider, newcomers = sso.configured(settings, token), identities.newcomers(settings)
    upgrade(settings.database)
    blobs = Blobs(settings.artifacts)
    context = Context(settings, Database(settings.database), blobs, engine(settings, blobs))
    context.models, context.dispatcher, context.live = Models(context), Dispatcher(context), Live(context)
    context.foresight = Foresight(context)
    context.examinations = Examinations(context)
    context.sweeper, context.summaries = Sweeper(context), Summaries(context)
    context.trier = Trier(context)
    context.derivations = Derivations(context)

    app = FastAPI(
        title="Fanlight", version=__version__, lifespan=_lifespan, docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json",
        separate_input_output_schemas=False,
    )  # fmt: skip
    app.state.context = context
    shapes.install(app)
    api = APIRouter(prefix="/api/v1", dependencies=[Depends(scoped), Depends(known_query)])
    for part in (
        catalog,
        inputs,
        explanations,
        exports,
        comparisons,
        artifacts,
        shares,
        sweeps,
        trials,
        derivations,
        trainings,
        worlds,
        views,
        keys,
        people,
        events,
    ):
        api.include_router(part.router)
    app.include_router(api)
    app.include_router(health.router)
    app.include_router(shares.public)

    # Dash answers every path that nothing else answers with its page, so what is not there has to say so before it.
    addressed = tuple(app.routes)

    @app.api_route("/api/{rest:path}", methods=METHODS, include_in_schema=False)
    @app.api_route("/s/{rest:path}", methods=METHODS, include_in_schema=False)
    async def nothing(rest: str, request: Request) -> None:
        at = [m for m in METHODS if any(r.matches({**request.scope, "method": m})[0] is Match.FULL for r in addressed)]
        if at:
            raise HTTPException(405, headers={"Allow": ", ".join(at)})
        raise NotFound(
            "There is nothing at this address.", code="not_found", given=rest, hint="docs/api.md lists the addresses."
        )

    policy = "default-src 'none'"
    app.add_middleware(Route)
    if pages:
        from fanlight_ui.app import create_pages, csp
        from fanlight_ui.compression import Compression

        client = AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False))
        policy = csp(create_pages(app, client=client, prefix=settings.root_path))
        app.add_middleware(Compression)
    door = Door(
        token,
        prefix=settings.root_path,
        hosts=hosts(settings),
        upload=settings.max_upload_mb * 2**20,
        policy=lambda: policy,
    )
    app.state.entry = Entry(context.db, settings.session_days, newcomers)
    app.add_middleware(Gate, door=door, doorman=app.state.entry, provider=provider)
    app.add_middleware(Overload, limit=settings.request_limit, prefix=settings.root_path)
    app.add_middleware(Watch)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    with sight.server():  # what is set going here works for every workspace
        async with _running(app.state.context):
            yield


@contextlib.asynccontextmanager
async def _running(context: Context) -> AsyncIterator[None]:
    context.bus.start()
    context.foresight.start()
    await context.engine.start()
    await context.dispatcher.start()
    context.sweeper.start()
    context.trier.start()
    context.derivations.start()
    listener = None if context.db.sqlite else Listener(context.db.url, context.db.name, context.dispatcher.hear)
    if listener is not None:
        listener.start()
    tasks = [
        asyncio.create_task(_open(context)),
        asyncio.create_task(listing.keep(context)),
        asyncio.create_task(retention.keep(context)),
    ]
    collector.settle()
    try:
        yield
    finally:
        log.info("draining", streams=context.bus.streams)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if listener is not None:
            await asyncio.to_thread(listener.close)
        await context.sweeper.stop()
        await context.trier.stop()
        await context.derivations.close()
        await context.examinations.close()
        context.summaries.close()
        await context.dispatcher.drain(DRAIN)
        await context.engine.close()
        context.db.close()
        log.info("drained")


async def _open(context: Context) -> None:
    """What is registered beside the running server: models and data sets at once, then worked examples, then the field guide."""
    try:
        await asyncio.gather(context.models.register(), _shelve(context))
        if context.settings.examples:
            await asyncio.to_thread(examples.compute, context)
        if context.settings.field_guide:
            await field_guide(context)
    except FanlightError as e:
        log.error("not everything could be registered", problem=e.message)
    except Exception:
        log.exception("not everything could be registered")


async def _shelve(context: Context) -> None:
    """The data sets, while the models are being loaded; one that cannot be read costs nobody the models."""
    try:
        for source in datasets.sources(context.settings):
            context.shelf[source.id] = Reading(source)
    except FanlightError as e:
        log.error("data set not registered", problem=e.message)
    for ident, reading in list(context.shelf.items()):
        try:
            await asyncio.to_thread(datasets.register, context, reading.source, reading.told)
        except FanlightError as e:
            log.error("data set not registered", dataset=ident, problem=e.message)
        finally:
            del context.shelf[ident]


def access_token(settings: Settings) -> str:
    """FANLIGHT_TOKEN, or the one in the data folder, made at the first start and readable by its owner alone."""
    if settings.token:
        return settings.token
    path = settings.data_dir / "token"
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            f.write(secrets.token_hex(32))
    return path.read_text().strip()


def serve(settings: Settings, *, browser: bool) -> int:
    """Runs the server until it is told to stop. Returns an exit code: 0, 1 where it cannot start, 4 where it refuses."""
    logs.configure(settings.log_level, [settings.token, settings.oidc_client_secret])
    if not settings.loopback and not settings.token:
        _say(
            f"Refused: {settings.host} is reachable by others and no authentication is configured. "
            "Set FANLIGHT_TOKEN to a long random text, or bind 127.0.0.1."
        )
        return 4
    try:
        lock = _lock(settings)
    except OSError as e:
        return _cannot(
            f"The data folder {settings.data_dir} cannot be used: {e.strerror}. Choose another with --data-dir."
        )
    except ArgumentError:
        return _cannot(
            "FANLIGHT_DATABASE_URL is no database address. Allowed: sqlite:///path or postgresql://user@host/name."
        )
    if lock is None:
        return _cannot(
            f"Another Fanlight server uses {settings.data_dir}. Stop it, or choose another folder with --data-dir."
        )
    with lock:
        try:
            sock = socket.create_server(
                (settings.host, settings.port), family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET
            )
        except OSError as e:
            return _cannot(
                f"Address {settings.host}, port {settings.port} cannot be used: {e.strerror}. Choose another port with --port."
            )
        port = sock.getsockname()[1]
        settings = settings.model_copy(update={"port": port})
        try:
            app = create(settings)
            known = [settings.token, access_token(settings), settings.oidc_client_secret]
            logs.configure(settings.log_level, known)
        except FanlightError as e:
            return _cannot(e.message)
        except (SQLAlchemyError, ImportError) as e:
            detail = str(getattr(e, "orig", None) or e).strip().splitlines()[0]
            return _cannot(
                f"The database cannot be opened: {detail} Check FANLIGHT_DATABASE_URL (sqlite:///path or postgresql://user@host/name)."
            )
        except (BaseError, OSError, ValueError) as e:
            detail = str(e).strip().splitlines()[0]
            return _cannot(
                f"The artifact store cannot be opened: {detail} Check FANLIGHT_ARTIFACTS_URL (a folder or s3://bucket/prefix)."
            )
        home = (
            settings.public_url
            or f"http://{settings.host if settings.host not in ('0.0.0.0', '::') else '127.0.0.1'}:{port}{settings.root_path}"
        )
        address = f"{home.rstrip('/')}/" + ("" if settings.token else f"?token={access_token(settings)}")
        _say(f"Fanlight {__version__}: {address}")
        if settings.token:
            _say("Access token: the value of FANLIGHT_TOKEN.")
        if settings.public_url is None and settings.loopback:
            _say("Links open on this machine only; FANLIGHT_PUBLIC_URL and --host let others in.")
        if browser:
            threading.Timer(1.5, webbrowser.open, [address]).start()
        config = uvicorn.Config(
            app, log_config=None, access_log=False, proxy_headers=False, timeout_graceful_shutdown=int(DRAIN) + 5, server_header=False, ws="none",
            timeout_keep_alive=75,
        )  # fmt: skip
        _Server(config).run(sockets=[sock])
    return 0


class _Server(uvicorn.Server):
    """Ends the streams of news when it is told to stop: it waits for answers that are being given, and theirs have no end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.config.app.state.context.bus.end()  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def _cannot(why: str) -> int:
    _say(why)
    return 1


def _lock(settings: Settings) -> contextlib.AbstractContextManager[object] | None:
    """One server per SQLite file: jobs of a dead one are free at once. Ends with the process, however it ends."""
    url = make_url(settings.database)
    if url.get_backend_name() != "sqlite" or sys.platform == "win32":
        return contextlib.nullcontext()
    import fcntl

    settings.data_dir.mkdir(0o700, parents=True, exist_ok=True)
    Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
    file = open(Path(str(url.database) + ".lock"), "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def hosts(settings: Settings) -> frozenset[str]:
    """Names this server answers to. Bound to the network with a token and no list, it answers to any."""
    extra = set(Settings.listed(settings.allowed_hosts))
    if not settings.loopback and not extra:
        return frozenset()
    public = urlsplit(settings.public_url).hostname if settings.public_url else None
    return frozenset({*LOCAL, settings.host, *extra, *([public] if public else [])})


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
