"""InlineEngine: works inside the event loop, one step per turn of it. Deterministic; for tests and notebooks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from fanlight.engine.base import Event, Health, Work
from fanlight.engine.core import Core, Executor
from fanlight.engine.handles import Handles, QueueHandle, draining
from fanlight.errors import FanlightError


class InlineEngine:
    """Args: make: builds the executor, at `start`."""

    live = 1

    def __init__(self, make: Callable[[], Executor]):
        self._make = make
        self._handles = Handles()
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._draining = False

    async def start(self) -> None:
        self.core = Core(self._make(), self._emit)
        self._task = asyncio.create_task(self._work())

    async def submit(self, work: Work) -> QueueHandle:
        if self._draining:
            raise draining()
        handle = self._handles.open(work.job, self.core.cancel)
        self.core.submit(work)
        self._wake.set()
        return handle

    async def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        answer: asyncio.Future[Mapping[str, Any] | FanlightError] = asyncio.get_running_loop().create_future()
        self.core.describe(source, answer.set_result)
        self._wake.set()
        found = await answer
        if isinstance(found, FanlightError):
            raise found
        return found

    async def edit(self, work: Work) -> Mapping[str, Any]:
        return await asyncio.to_thread(self.core.executor.edit, work)

    async def health(self) -> Health:
        core = self.core
        device = str(getattr(core.executor, "device", "cpu"))
        throughput = core.finished_cost / core.spent if core.spent else 0.0
        detail = {"steps": core.steps, "longest_step": core.longest_step, "throughput": throughput}
        return Health(
            self._task is not None, device, len(core.waiting), sum(len(b.entries) for b in core.active), detail
        )

    async def drain(self) -> None:
        self._draining = True
        self._wake.set()
        await self._handles.emptied()

    async def close(self) -> None:
        self._draining = True
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._handles.fail_all(lambda _: draining())

    def _emit(self, event: Event) -> None:
        self._handles.put(event)

    async def _work(self) -> None:
        while True:
            if self.core.turn(block=False):
                await asyncio.sleep(0)
            else:
                self._wake.clear()
                rest = self.core.rest()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), None if rest == float("inf") else rest)
