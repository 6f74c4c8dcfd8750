"""News for streams: persisted events are read from the database after a tick, progress goes out directly and is not kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from sqlalchemy import select

from fanlight.store.database import Database
from fanlight.store.tables import event

STREAMS = 200
OF_ONE = 40  # of one principal, so that nobody has them all
BACKLOG = 500
HEARTBEAT = 15.0
END: Mapping[str, Any] = {"type": "end"}  # recognised as this very object; never sent
REFRESH: Mapping[str, Any] = {"type": "refresh"}
"""For who comes back after events that are no longer kept: what they show may be out of date in any way."""


class Bus:
    """Ticks and progress inside one server."""

    def __init__(self) -> None:
        self._queues: dict[asyncio.Queue[Mapping[str, Any] | None], str] = {}  # with the workspace that each is about
        self._ears: list[asyncio.Event] = []
        self.seats: Counter[str] = Counter()
        """How many streams each principal has open or about to open; touched by the event loop alone."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def tick(self) -> None:
        """From any thread: the event table has grown."""
        self._spread(None)

    def end(self) -> None:
        """From any thread: the server is about to stop; streams would keep it waiting."""
        self._spread(END)

    def ear(self) -> asyncio.Event:
        """An event that every tick sets; whoever has it clears it."""
        self._ears.append(asyncio.Event())
        return self._ears[-1]

    def publish(self, workspace: str, data: Mapping[str, Any]) -> None:
        """From any thread: something fleeting, such as progress, for those who look at this workspace."""
        self._spread(data, workspace)

    @property
    def streams(self) -> int:
        return len(self._queues)

    def _spread(self, message: Mapping[str, Any] | None, workspace: str | None = None) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, message, workspace)

    def _deliver(self, message: Mapping[str, Any] | None, workspace: str | None) -> None:
        if message is None:
            for ear in self._ears:
                ear.set()
        for q, about in self._queues.items():
            if workspace is not None and about != workspace:
                continue
            if q.qsize() < BACKLOG or message is END:  # a stream that does not read catches up from the table
                q.put_nowait(message)

    @contextlib.contextmanager
    def _subscribed(self, workspace: str) -> Iterator[asyncio.Queue[Mapping[str, Any] | None]]:
        q: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self._queues[q] = workspace
        try:
            yield q
        finally:
            del self._queues[q]

    async def stream(
        self, db: Database, workspace: str, last: int | None
    ) -> AsyncIterator[tuple[int | None, Mapping[str, Any]]]:
        """Events of a workspace: those after `last` (or from now on), then what comes. Yields (id or None, data); (None, {}) is a heartbeat.

        Where events after `last` are no longer kept, REFRESH stands for all up to now.
        """
        with self._subscribed(workspace) as q:
            seen = last if last is not None else await db.aread(newest)
            if last is not None and await db.aread(lambda c: pruned(c, last)):
                seen = await db.aread(newest)
                yield seen, REFRESH
            while True:
                while rows := await db.aread(lambda c, s=seen: _after(c, workspace, s)):  # type: ignore[misc]
                    for row in rows:
                        seen = row.id
                        yield row.id, row.data
                ticked = False
                while not ticked:
                    try:
                        message = await asyncio.wait_for(q.get(), HEARTBEAT)
                    except TimeoutError:  # look too: another server may have written, or a tick found the queue full
                        yield None, {}
                        message = None
                    if message is END:
                        return
                    if message is None:
                        ticked = True
                    else:
                        yield None, message


def newest(conn: Any) -> int:
    """The id of the latest event."""
    return int(conn.execute(select(event.c.id).order_by(event.c.id.desc()).limit(1)).scalar() or 0)


def pruned(conn: Any, last: int) -> bool:
    """Whether events after this one have been deleted. The newest never is, so that numbers go on where they were."""
    oldest = conn.execute(select(event.c.id).order_by(event.c.id).limit(1)).scalar()
    return oldest is not None and last < oldest - 1


def _after(conn: Any, workspace: str, last: int) -> list[Any]:
    wanted = select(event).where(event.c.workspace == workspace, event.c.id > last).order_by(event.c.id).limit(BACKLOG)
    return list(conn.execute(wanted))
