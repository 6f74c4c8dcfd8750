"""LocalEngine: one compute worker on this machine, as a child process (default) or a thread, behind the same seam.

A child keeps the server's memory and its interpreter lock free of torch, and a crash, a kill or a hang of a model costs one attempt of the
jobs it held, not the server: it is replaced.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from fanlight.engine.base import Event, Health, Work
from fanlight.engine.handles import Handles, QueueHandle, draining
from fanlight.errors import ComputeFailed, FanlightError, Unavailable

if TYPE_CHECKING:
    from fanlight.engine.core import Core, Executor
    from fanlight.engine.execute import Config

log = structlog.get_logger()
LINE = 64 * 2**20  # longest message from the child
# Threads that spin long at OpenMP's barriers starve each other where cores are shared; threads that sleep at once are late at every
# barrier, and a network has hundreds. So they spin for some microseconds (docs/decisions/0009).
PATIENT = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
STARTS = 5  # deaths of the child before it was ready, one after the other, after which the engine gives up


class ThreadEngine:
    """The core in a thread of this process. Args: make: builds the executor, in that thread."""

    live = 1

    def __init__(self, make: Callable[[], Executor]):
        self._make = make
        self._handles = Handles()
        self._ready = asyncio.Event()
        self._draining = False
        self._core: Core | None = None
        self._broken: BaseException | None = None
        self._lost = ""
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="compute", daemon=True)
        self._thread.start()

    async def submit(self, work: Work) -> QueueHandle:
        core = await self._core_when_ready()
        handle = self._handles.open(work.job, core.cancel)
        core.submit(work)
        return handle

    async def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        core = await self._core_when_ready()
        answer: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()

        def settle(found: Mapping[str, Any] | FanlightError) -> None:
            if isinstance(found, FanlightError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        core.describe(source, lambda found: _call(self._loop, settle, found))
        return await answer

    async def edit(self, work: Work) -> Mapping[str, Any]:
        core = await self._core_when_ready()
        return await asyncio.to_thread(core.executor.edit, work)

    async def health(self) -> Health:
        core = self._core
        if core is None:
            return Health(False, "starting", 0, 0)
        throughput = core.finished_cost / core.spent if core.spent else 0.0
        detail = {"steps": core.steps, "longest_step": core.longest_step, "throughput": throughput}
        device = str(getattr(core.executor, "device", "cpu"))
        return Health(not self._lost, device, len(core.waiting), sum(len(b.entries) for b in core.active), detail)

    async def drain(self) -> None:
        self._draining = True
        await self._handles.emptied()

    async def close(self) -> None:
        self._draining = True
        if self._core:
            self._core.stop()
        if self._thread:
            await asyncio.to_thread(self._thread.join, 10)
        self._handles.fail_all(lambda _: draining())

    def _lose_device(self, why: str) -> None:
        """From the thread of the core. This process gets no new context of the device: what is open is for another."""
        self._lost = why
        _call(self._loop, self._handles.fail_all, lambda _: crashed(why))

    async def _core_when_ready(self) -> Core:
        if self._draining:
            raise draining()
        await self._ready.wait()
        if self._lost:
            hint = "Restart the server; with FANLIGHT_ISOLATE=true the worker is replaced without that."
            raise Unavailable(f"The compute thread has lost its device. {self._lost}", code="engine_down", hint=hint)
        if self._core is None:
            raise Unavailable(
                f"The compute worker did not start: {self._broken}", code="engine_down", hint="See the server's log."
            )
        return self._core

    def _run(self) -> None:
        from fanlight.engine.core import Core

        try:
            self._core = Core(
                self._make(), lambda event: _call(self._loop, self._handles.put, event), fatal=self._lose_device
            )
        except BaseException as e:
            self._broken = e
            raise
        finally:
            _call(self._loop, self._ready.set)
        self._core.run()


class ProcessEngine:
    """The core in a child process. Args: config; step_timeout: seconds without a step, while there is work, before the child is replaced."""

    live = 1

    def __init__(self, config: Config | Mapping[str, Any], *, step_timeout: float = 120):
        self._config = dict(config) if isinstance(config, Mapping) else asdict(config)
        self._step_timeout = step_timeout
        self._handles = Handles()
        self._ready = asyncio.Event()
        self._health: Mapping[str, Any] = {}
        self._answers: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._numbers = itertools.count()
        self._draining = self._closed = False
        self._deaths = 0
        self._turn: Sequence[str] = ()
        self._broken = self._said = self._dying = ""
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._supervise())

    @property
    def pid(self) -> int | None:
        """Of the child, for those who want to watch or kill it."""
        return self._process.pid if self._process else None

    @property
    def broken(self) -> str:
        """Why no child starts any more; empty while one lives or is being started."""
        return self._broken

    async def submit(self, work: Work) -> QueueHandle:
        await self._when_ready()
        handle = self._handles.open(work.job, lambda job: self._send({"cancel": job}))
        self._send({"work": work.json()})
        return handle

    async def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._ask({"describe": dict(source)})

    async def edit(self, work: Work) -> Mapping[str, Any]:
        return await self._ask({"edit": work.json()})

    async def _ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the child answers; the answer finds its question by number."""
        await self._when_ready()
        number = next(self._numbers)
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._send({**question, "number": number})
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    async def health(self) -> Health:
        h = self._health
        return Health(
            self._ready.is_set() and not self._broken,
            h.get("device", "starting"),
            h.get("waiting", 0),
            h.get("active", 0),
            h,
        )

    async def drain(self) -> None:
        self._draining = True
        await self._handles.emptied()

    async def close(self) -> None:
        self._closed = True
        if self._process and self._process.returncode is None:
            self._process.kill()
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _when_ready(self) -> None:
        if not (self._draining or self._closed):
            await self._ready.wait()
        if self._draining or self._closed:
            raise draining()
        if self._broken:
            raise Unavailable(
                f"The compute worker does not start: {self._broken}", code="engine_down", hint="See the server's log."
            )

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._process and self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(orjson.dumps(message) + b"\n")

    async def _supervise(self) -> None:
        """Keeps a child alive: starts it, listens to it, replaces it."""
        while not self._closed and not self._broken:
            try:
                code = await self._live()
            except Exception as e:
                log.exception("compute worker lost")
                code, self._said = None, f"{type(e).__name__}: {e}"
            self._ready.clear()
            if self._closed:
                break
            self._deaths += 1
            log.warning("compute worker ended", code=code, open=len(self._handles))
            if self._deaths >= STARTS and not self._broken:
                self._broken = f"it ended {self._deaths} times in a row. {self._said}".strip()
            self._lose()
            await asyncio.sleep(min(self._deaths - 1, 5))
        self._lose()
        self._ready.set()

    async def _live(self) -> int:
        """One life of a child; returns its exit code."""
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "fanlight.engine.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE,
            env={**PATIENT, **os.environ},
        )
        self._turn, self._dying = (), ""
        self._send(self._config)
        watch = asyncio.create_task(self._watchdog(process))
        try:
            await self._listen(process)
        finally:
            watch.cancel()
            if process.returncode is None:
                process.kill()
            code = await process.wait()
        return code

    def _lose(self) -> None:
        """Ends what the dead child had: only those that had the device may be to blame."""

        def error(job: str) -> FanlightError:
            return draining() if self._closed else crashed(self._dying) if job in self._turn else lost()

        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(crashed())
        self._handles.fail_all(error)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            message = orjson.loads(line)
            if "event" in message:
                job, kind, data = message["event"]
                self._handles.put(Event(job, kind, data))
            elif "turn" in message:
                self._turn = message["turn"]
            elif "health" in message:
                self._health = message["health"]
            elif "ready" in message:
                self._health, self._deaths = message["ready"], 0
                self._ready.set()
            elif "answered" in message:
                answer = self._answers.get(message["answered"])
                if answer is not None and not answer.done():
                    if "value" in message:
                        answer.set_result(message["value"])
                    else:
                        answer.set_exception(revived(message["error"], message["status"]))
            elif "dying" in message:
                self._dying = message["dying"]
                log.error("the device is lost to the compute worker; replacing it", problem=self._dying)
            elif "broken" in message:
                self._broken = message["broken"]

    async def _watchdog(self, process: asyncio.subprocess.Process) -> None:
        """Replaces a child that has work and takes no step."""
        steps, since = -1, time.monotonic()
        while True:
            await asyncio.sleep(min(1.0, self._step_timeout / 4))
            now = self._health.get("steps", 0)
            if now != steps or not (self._handles or self._answers):
                steps, since = now, time.monotonic()
            elif time.monotonic() - since > self._step_timeout:
                log.error("compute worker takes no step; replacing it", seconds=self._step_timeout)
                process.kill()
                return


def crashed(why: str = "") -> ComputeFailed:
    """Args: why: a sentence, where it is known."""
    return ComputeFailed(
        f"{why.rstrip('.')}. The device was lost by it."
        if why
        else "The compute worker ended, or took no step for too long, while it worked on this.",
        code="worker_crashed",
        hint="Check the model with: fanlight doctor MODEL",
    )


def lost() -> ComputeFailed:
    return ComputeFailed(
        "The compute worker ended while this waited.", code="worker_lost", hint="The job is tried again."
    )


def _call(loop: asyncio.AbstractEventLoop, fn: Callable[..., None], *args: Any) -> None:
    """Calls `fn` in the loop's thread, unless the loop is gone."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(fn, *args)


def revived(body: Mapping[str, Any], status: int) -> FanlightError:
    error = ComputeFailed(
        body["message"], code=body["code"], given=body.get("given"), allowed=body.get("allowed"), hint=body.get("hint")
    )
    error.status = status
    return error
