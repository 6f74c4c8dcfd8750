"""Handles of submitted work, shared by the engines: events arrive from somewhere, and are read once, in order, by whoever submitted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from fanlight.engine.base import Event
from fanlight.errors import FanlightError, Unavailable

PACE = 0.05  # seconds between two messages that hold nothing but progress


class QueueHandle:
    """A handle fed by `put`, from the event loop's thread. Args: stop: asks the core to cancel."""

    def __init__(self, job: str, stop: Callable[[str], None]):
        self.job = job
        self._stop = stop
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._over = False
        self.over = False
        """Whether the last event has come, read or not."""

    def put(self, event: Event) -> None:
        self.over = event.last
        self._events.put_nowait(event)

    async def events(self) -> AsyncIterator[Event]:
        while not self._over:
            event = await self._events.get()
            self._over = event.last
            yield event

    async def batches(self) -> AsyncIterator[list[Event]]:
        """The same, as many at a time as have come: where a message is dear. Progress waits for company, nothing else does."""
        said = float("-inf")
        while not self._over:
            some = [await self._events.get()]
            while not some[-1].last:
                left = said + PACE - time.monotonic()
                if not self._events.empty():
                    some.append(self._events.get_nowait())
                elif some[-1].kind == "progress" and left > 0:
                    with contextlib.suppress(TimeoutError):
                        some.append(await asyncio.wait_for(self._events.get(), left))
                else:
                    break
            self._over = some[-1].last
            said = time.monotonic()
            yield thinned(some)

    async def cancel(self) -> None:
        self._stop(self.job)


def thinned(events: Sequence[Event]) -> list[Event]:
    """`events` with one progress instead of several in a row: the last, with the latest preview."""
    kept: list[Event] = []
    for event in events:
        if kept and event.kind == kept[-1].kind == "progress":
            event = replace(event, data={**kept.pop().data, **event.data})
        kept.append(event)
    return kept


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
