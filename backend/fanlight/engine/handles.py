"""Handles of submitted work, shared by the engines: events arrive from somewhere, and are read once, in order, by whoever submitted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from fanlight.engine.base import Event
from fanlight.errors import FanlightError, Unavailable


class QueueHandle:
    """A handle fed by `put`, from the event loop's thread. Args: stop: asks the core to cancel."""

    def __init__(self, job: str, stop: Callable[[str], None]):
        self.job = job
        self._stop = stop
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._over = False

    def put(self, event: Event) -> None:
        self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[Event]:
        while not self._over:
            event = await self._events.get()
            self._over = event.last
            yield event

    async def cancel(self) -> None:
        self._stop(self.job)


def draining() -> Unavailable:
    """What an engine says that takes no more work."""
    return Unavailable("The server is shutting down.", code="draining", hint="Try again shortly.")


class Handles:
    """The open handles of an engine, by job."""

    def __init__(self) -> None:
        self._open: dict[str, QueueHandle] = {}
        self._none = asyncio.Event()
        self._none.set()

    async def emptied(self) -> None:
        """Waits until every open job has had its last event."""
        await self._none.wait()

    def open(self, job: str, stop: Callable[[str], None]) -> QueueHandle:
        if job in self._open:
            raise ValueError(f"job {job} is already submitted")
        handle = self._open[job] = QueueHandle(job, stop)
        self._none.clear()
        return handle

    def put(self, event: Event) -> None:
        """Delivers an event; one of a job that is not open any more is late and dropped."""
        handle = self._open.get(event.job)
        if handle is None:
            return
        if event.last:
            del self._open[event.job]
            if not self._open:
                self._none.set()
        handle.put(event)

    def fail_all(self, error: Callable[[str], FanlightError]) -> None:
        """The worker is gone: every open job failed in a way that is worth another attempt. Args: error: of a job."""
        for job in list(self._open):
            self.put(Event(job, "failed", {**error(job).body()["error"], "retryable": True}))

    def __len__(self) -> int:
        return len(self._open)

    def __bool__(self) -> bool:
        return bool(self._open)
