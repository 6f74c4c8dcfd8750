"""RayEngine: the compute core in replicas of Ray Serve, on this machine or many, behind the same seam.

Ray places replicas, scales them between bounds, watches them and brings the calls to them; what a replica holds is a local engine
(`engine.replica`). Two pools, so that bulk work never takes a device from somebody who waits. Calls go through handles, never through Ray's
HTTP proxy, which is not started. docs/decisions/0012.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog

from fanlight.artifact import canonical, digest
from fanlight.engine.base import BULK, BULK_TRUST, Event, Health, Work
from fanlight.engine.handles import Handles, QueueHandle, draining
from fanlight.engine.local import crashed, lost, revived
from fanlight.errors import FanlightError, InvalidField, Unavailable
from fanlight.settings import Settings

log = structlog.get_logger()
ONGOING = (
    256  # calls in one replica: its core needs many to fill batches from, and a live edit must never wait for a place
)
WAITING = 64  # calls of this server that wait for a place before the next is sent back to the ledger
TARGET = 16  # calls per replica at which Ray starts another: a batch's worth
BOUND = {"interactive": 4, "bulk": 16}  # calls in the replica that has the model before another may load it too
WATCH = 2.0  # seconds between two looks at the replicas
PAUSE = 0.5  # seconds before a job is sent back that no replica would take
GRACE = 60.0  # seconds that a replica which is not needed any more has for what it does
OBJECTS = 80 * 2**20  # bytes of Ray's shared memory: only JSON passes, the rest is in the artifact store


@dataclass(frozen=True)
class Pool:
    """Replicas of one kind. Args: least, most: bounds of their number."""

    least: int = 1
    most: int = 1

    @classmethod
    def of(cls, text: str) -> Pool:
        """Of "2" or "1:4"."""
        least, _, most = text.partition(":")
        return cls(int(least), int(most or least))


@dataclass(frozen=True)
class Plan:
    """Where and how many.

    Args:
        address: of a cluster that runs, for example "auto" or "10.0.0.5:6379"; empty: one of our own, on loopback.
        interactive, bulk: the pools; without bulk replicas the interactive ones do everything.
        cpus, gpus: what each replica reserves.
        name: of the applications, so that two installations may share a cluster.
        isolate, step_timeout: of the engine in each replica.
    """

    address: str = ""
    interactive: Pool = field(default_factory=Pool)
    bulk: Pool = field(default_factory=Pool)
    cpus: float = 1
    gpus: float = 0
    name: str = "fanlight"
    isolate: bool = True
    step_timeout: float = 120

    @property
    def pools(self) -> dict[str, Pool]:
        pools = {"interactive": self.interactive, "bulk": self.bulk}
        return {name: pool for name, pool in pools.items() if pool.most}


def planned(settings: Settings) -> Plan:
    """What the settings ask for. Where no threads are named a replica has one, because several may share a machine."""
    if ":" in settings.device:
        raise InvalidField(
            "Ray chooses the GPU of each replica.",
            code="ray_device",
            given=settings.device,
            allowed=["auto", "cpu", "cuda"],
            hint="Set FANLIGHT_DEVICE=cuda.",
        )
    return Plan(
        settings.ray_address,
        Pool.of(settings.ray_interactive),
        Pool.of(settings.ray_bulk),
        cpus=settings.threads or 1,
        gpus=settings.ray_gpus or float(settings.device == "cuda"),
        isolate=settings.isolate,
        step_timeout=settings.step_timeout,
    )


class RayEngine:
    """Args: config: of `execute.Config`, as a mapping; plan."""

    def __init__(self, config: Mapping[str, Any], plan: Plan):
        self.plan = plan
        self._hosted = {"config": dict(config), "isolate": plan.isolate, "step_timeout": plan.step_timeout}
        self._handles = Handles()
        self._ready = asyncio.Event()
        self._draining = self._closed = False
        self._broken = ""
        self._pools: dict[str, Any] = {}
        self._running: set[str] = set()
        self._calls: dict[str, tuple[QueueHandle, Any]] = {}
        self._replicas: dict[str, int] = {}
        self._health: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._device = "starting"
        self._tasks: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    # --- the seam

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def submit(self, work: Work) -> QueueHandle:
        await self._when_ready()
        handle = self._handles.open(work.job, self._cancel)
        pool = self._pool(work)
        stream = pool.work.options(stream=True).remote(work.model["digest"], orjson.dumps(work.json()))
        self._calls[work.job] = (handle, stream)
        task = asyncio.create_task(self._follow(work.job, handle, stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return handle

    async def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._when_ready()
        said = canonical(dict(source))
        return await self._ask(self._pools["interactive"].describe, digest(said), said)

    async def edit(self, work: Work) -> Mapping[str, Any]:
        await self._when_ready()
        return await self._ask(self._pools["interactive"].edit, work.model["digest"], orjson.dumps(work.json()))

    async def health(self) -> Health:
        running = len(self._running)
        detail = {
            "steps": sum(h.get("steps", 0) for _, h in self._health.values()),
            "longest_step": max((h.get("longest_step", 0.0) for _, h in self._health.values()), default=0.0),
            "throughput": sum(h.get("throughput", 0.0) for _, h in self._health.values()),
            "replicas": sum(self._replicas.values()),
        }
        ready = self._ready.is_set() and not self._broken and self._replicas.get("interactive", 0) > 0
        return Health(ready, self._device, len(self._handles) - running, running, detail)

    async def drain(self) -> None:
        self._draining = True
        await self._handles.emptied()

    async def close(self) -> None:
        self._closed = True
        for _, stream in list(self._calls.values()):
            stream.cancel()
        self._handles.fail_all(lambda _: draining())
        tasks = [*self._tasks, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self.plan.address:
            await asyncio.to_thread(_leave)

    # --- calls

    def _pool(self, work: Work) -> Any:
        bulk = self._pools.get("bulk") if work.priority in (BULK, BULK_TRUST) else None
        return bulk or self._pools["interactive"]

    async def _when_ready(self) -> None:
        if not (self._draining or self._closed):
            await self._ready.wait()
        if self._draining or self._closed:
            raise draining()
        if self._broken:
            raise Unavailable(f"The Ray replicas do not start: {self._broken}", code="engine_down", hint="See the log.")

    async def _ask(self, method: Any, model: str, said: bytes) -> Mapping[str, Any]:
        try:
            message = orjson.loads(await method.remote(model, said))
        except Exception as e:
            raise self._gone(e, started=True) from e
        self._note(message)
        if "error" in message:
            raise revived(message["error"], message["status"])
        return message["value"]  # type: ignore[no-any-return]

    async def _follow(self, job: str, handle: QueueHandle, stream: Any) -> None:
        """Brings the events of one call to its handle; whatever becomes of the replica, there is a last one."""
        error: FanlightError = lost()
        try:
            async for said in stream:
                message = orjson.loads(said)
                self._note(message)
                for kind, data in message.get("events", ()):
                    self._put(handle, Event(job, kind, data))
                if "error" in message:
                    error = revived(message["error"], message["status"])
        except asyncio.CancelledError:
            if handle.over or self._closed:
                return
            error = lost()
        except Exception as e:
            if not handle.over:
                error = self._gone(e, started=job in self._running)
        finally:
            if self._calls.get(job, (None,))[0] is handle:
                del self._calls[job]
        if not handle.over:
            log.warning("job lost by its replica", job=job, code=error.code, problem=error.message)
            await asyncio.sleep(PAUSE)
            self._put(handle, Event(job, "failed", {**error.body()["error"], "retryable": True}))

    def _put(self, handle: QueueHandle, event: Event) -> None:
        if handle.over:
            return
        if event.kind == "started":
            self._running.add(event.job)
        elif event.last:
            self._running.discard(event.job)
        self._handles.put(event)

    def _cancel(self, job: str) -> None:
        """The replica stops at its next step; here the job is over at once, whatever it still says."""
        if job not in self._calls:
            return
        handle, stream = self._calls.pop(job)
        self._put(handle, Event(job, "cancelled"))
        stream.cancel()

    def _gone(self, error: Exception, *, started: bool) -> FanlightError:
        """What became of a call that ended without an answer."""
        from ray.serve.exceptions import BackPressureError

        log.warning("call to a replica failed", problem=f"{type(error).__name__}: {str(error).splitlines()[0][:200]}")
        if isinstance(error, BackPressureError):
            return Unavailable("All replicas are busy.", code="replicas_busy", hint="The job is tried again.")
        return crashed() if started else lost()

    def _note(self, message: Mapping[str, Any]) -> None:
        self._device = message["device"]
        self._health[message["replica"]] = (time.monotonic(), message["health"])

    # --- the cluster

    async def _run(self) -> None:
        """Deploys the pools, then looks after how many replicas there are."""
        try:
            with _signals_kept():
                await asyncio.to_thread(_join, self.plan)
            self._pools = await asyncio.to_thread(_deploy, self._hosted, self.plan)
            self._replicas = await asyncio.to_thread(_replicas, self._hosted, self.plan)
        except Exception as e:
            log.exception("Ray did not start")
            self._broken = e.message if isinstance(e, FanlightError) else f"{type(e).__name__}: {e}"
            return
        finally:
            self._ready.set()
        while True:
            await asyncio.sleep(WATCH)
            with contextlib.suppress(Exception):
                self._replicas = await asyncio.to_thread(_replicas, self._hosted, self.plan)
            known = sorted(self._health, key=lambda name: self._health[name][0], reverse=True)
            for gone in known[max(1, sum(self._replicas.values())) :]:
                del self._health[gone]


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself, and ends the process three seconds after it: too soon to hand work back."""
    mine = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if mine and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _join(plan: Plan) -> None:
    """Connects to the cluster, or starts one on loopback. Authentication is by token always; nothing is reported to anybody."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    known = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if plan.address and not known:
        raise Unavailable(
            "A Ray cluster runs code for whoever reaches it, so Fanlight joins none without a token.",
            code="ray_token",
            hint="Set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to the same token on every node.",
        )
    if not plan.address:
        if not known:
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        # Otherwise Ray listens on the address by which others reach this machine.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    if ray.is_initialized():
        return
    options: dict[str, Any] = {"namespace": "fanlight", "log_to_driver": False, "logging_level": "error"}
    if plan.address:
        ray.init(plan.address, **options)
    else:
        # The controller of Serve needs a processor of its own in Ray's books.
        cpus = 1 + sum(pool.most for pool in plan.pools.values()) * plan.cpus
        ray.init("local", num_cpus=int(-(-cpus // 1)), include_dashboard=False, object_store_memory=OBJECTS, **options)


def _deploy(hosted: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Handles of the pools, which are running when this returns; equal ones that run already are left as they are, others go."""
    from ray import serve
    from ray.serve.config import ProxyLocation

    logging.getLogger("ray.serve").setLevel(logging.ERROR)  # what it says of itself is in files of its own
    serve.start(proxy_location=ProxyLocation.Disabled, logging_config={"log_level": "WARNING"})
    names = {name: _named(hosted, plan, name) for name in plan.pools}
    known = serve.status().applications
    for old in [n for n in known if n.startswith(f"{plan.name}-") and n not in names.values()]:
        serve.delete(old)
    absent = [name for name in names if names[name] not in known or known[names[name]].status == "DEPLOY_FAILED"]
    if absent:
        serve.run_many([_target(name, names[name], hosted, plan) for name in absent])
    return {name: serve.get_app_handle(full) for name, full in names.items()}


def _named(hosted: Mapping[str, Any], plan: Plan, pool: str) -> str:
    """The name of a pool's application says what runs in it, so that servers with equal settings share it."""
    from fanlight import __version__

    return f"{plan.name}-{pool}-{digest(canonical([__version__, hosted, plan.cpus, plan.gpus]))[:12]}"


def _target(name: str, full: str, hosted: Mapping[str, Any], plan: Plan) -> Any:
    from ray import serve
    from ray.serve.config import AutoscalingConfig, RequestRouterConfig

    from fanlight.engine.replica import Affinity, Replica

    pool = plan.pools[name]
    scaling = AutoscalingConfig(
        min_replicas=pool.least,
        max_replicas=pool.most,
        target_ongoing_requests=TARGET,
        upscale_delay_s=5,
        downscale_delay_s=300,
    )
    deployment = serve.deployment(
        Replica,
        name=name,
        autoscaling_config=scaling,
        max_ongoing_requests=ONGOING,
        max_queued_requests=WAITING,
        ray_actor_options={"num_cpus": plan.cpus, "num_gpus": plan.gpus},
        graceful_shutdown_timeout_s=GRACE,
        health_check_period_s=5,
        health_check_timeout_s=30,
        request_router_config=RequestRouterConfig(
            request_router_class=Affinity, request_router_kwargs={"bound": BOUND[name]}
        ),
    )
    return serve.RunTarget(deployment.bind(hosted), name=full, route_prefix=None)


def _replicas(hosted: Mapping[str, Any], plan: Plan) -> dict[str, int]:
    """How many replicas of each pool are running."""
    from ray import serve

    known = serve.status().applications
    found = {name: known.get(_named(hosted, plan, name)) for name in plan.pools}
    return {
        name: app.deployments[name].replica_states.get("RUNNING", 0) if app and name in app.deployments else 0
        for name, app in found.items()
    }


def _leave() -> None:
    """Ends the cluster that is our own."""
    import ray
    from ray import serve

    if ray.is_initialized():
        with contextlib.suppress(Exception):
            serve.shutdown()
        ray.shutdown()
