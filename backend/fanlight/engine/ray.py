"""RayEngine: the compute core in replicas of Ray Serve, on this machine or many, behind the same seam.

Ray places replicas, scales them between bounds, watches them and brings the calls to them (`engine.cluster`); what a replica holds is a local engine
(`engine.replica`). Two pools, so that bulk work never takes a device from somebody who waits. Calls go through handles, never through Ray's
HTTP proxy, which is not started. docs/decisions/0012.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import orjson
import structlog

from fanlight.artifact import canonical, digest
from fanlight.engine import cluster
from fanlight.engine.base import BULK, BULK_TRUST, Event, Health, Work
from fanlight.engine.cluster import Plan
from fanlight.engine.handles import Handles, QueueHandle, draining
from fanlight.engine.local import crashed, lost, revived
from fanlight.errors import FanlightError, Unavailable

log = structlog.get_logger()
WATCH = 2.0  # seconds between two looks at the replicas
PAUSE = 0.5  # seconds before a job is sent back that no replica would take


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

    @property
    def live(self) -> int:
        return self.plan.interactive.most

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
            await asyncio.to_thread(cluster.leave)

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
            with cluster.signals_kept():
                await asyncio.to_thread(cluster.join, self.plan)
            self._pools = await asyncio.to_thread(cluster.deploy, self._hosted, self.plan)
            self._replicas = await asyncio.to_thread(cluster.replicas, self._hosted, self.plan)
        except Exception as e:
            log.exception("Ray did not start")
            self._broken = e.message if isinstance(e, FanlightError) else f"{type(e).__name__}: {e}"
            return
        finally:
            self._ready.set()
        while True:
            await asyncio.sleep(WATCH)
            try:
                self._replicas = await asyncio.to_thread(cluster.replicas, self._hosted, self.plan)
            except Exception as e:
                self._replicas = {}  # not ready, as long as the cluster does not answer
                log.warning("Ray does not answer", problem=f"{type(e).__name__}: {str(e)[:200]}")
            known = sorted(self._health, key=lambda name: self._health[name][0], reverse=True)
            for gone in known[max(1, sum(self._replicas.values())) :]:
                del self._health[gone]
