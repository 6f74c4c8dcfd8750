"""The dispatcher: takes jobs from the ledger to the engine and writes down what comes of them. One task of the server's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import secrets
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import Connection, Row, bindparam, select, update

from fanlight import meters
from fanlight.engine.base import Handle, Work
from fanlight.errors import ComputeFailed, FanlightError, Unavailable
from fanlight.service import turns
from fanlight.service.outcome import finished, predicted, unmeasured, verified
from fanlight.service.waiting import Waiting
from fanlight.store import claims, ledger
from fanlight.store.database import now
from fanlight.store.news import News
from fanlight.store.tables import explanation, job

if TYPE_CHECKING:
    from fanlight.service.context import Context

log = structlog.get_logger()

RENEW = 10.0
_STATE = select(explanation.c.state).where(explanation.c.id == bindparam("id"))
TOGETHER = 0.01  # seconds in which the jobs of a batch say that they have begun
NOTE = 1.0  # seconds between two written progresses


class Dispatcher:
    """Args: context. `start` and `stop` belong to the application's lifespan."""

    def __init__(self, context: Context):
        self.context = context
        self.owner = secrets.token_hex(8)
        self.seen = 0  # attempts that were followed to their end
        self.throughput = 50.0  # forward passes per second until measured
        self.workers = 1  # replicas, where the engine has several
        self._wake = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._handles: dict[str, Handle] = {}
        self._held: dict[str, Row[Any]] = {}
        self.waiting = Waiting(context.db)
        self._news: dict[str, dict[str, Any]] = {}
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._begun: list[Row[Any]] = []
        self._background: set[asyncio.Future[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._here = contextvars.Context()

    # --- the application's side

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._here = contextvars.copy_context()  # the server's, in which what others say is looked at
        if self.context.db.sqlite:  # this server is the only one of its file: what a dead one held is free
            await self.context.db.awrite(lambda c: self._reclaim(c, [], dead=True))
        self._loops = [asyncio.create_task(self._claim_loop()), asyncio.create_task(self._renew_loop())]

    async def drain(self, seconds: float) -> None:
        """Takes nothing new and gives what is not finished in time back to the queue."""
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def kick(self) -> None:
        """From any thread: there is something to claim."""
        self._loop.call_soon_threadsafe(self._wake.set)

    def hear(self, news: News) -> None:
        """From any thread: what another server on the same PostgreSQL did, or may have done."""
        if news.events:
            self.context.bus.tick()
        for name in news.stop:
            self.stop(name)
        self._loop.call_soon_threadsafe(self._heard, news, context=self._here)

    def _heard(self, news: News) -> None:
        if news.jobs:
            self._wake.set()
        if news.events:
            for over in [over for some in self._waiters.values() for over in some]:
                over.set()
        theirs = news.progress - self._tasks.keys()
        if theirs and self.context.bus.streams:
            self._aside(self._pass_on(theirs))

    async def _pass_on(self, names: Collection[str]) -> None:
        """Shows the progress that another server wrote down."""
        with contextlib.suppress(FanlightError):
            wanted = select(job).where(job.c.id.in_(list(names)), job.c.state == "running")
            for row in await self.context.db.aread(lambda c: list(c.execute(wanted))):
                self._tell(row, "running", {"progress": row.progress, "message": row.message})

    def stop(self, name: str) -> None:
        """From any thread: nobody waits for this job any more."""

        def act() -> None:
            handle = self._handles.get(name)
            if handle is not None:
                self._aside(handle.cancel())
            self._wake.set()

        self._loop.call_soon_threadsafe(act)

    async def ended(self, ident: str, seconds: float) -> None:
        """Waits until the explanation is over, whoever works on it, or `seconds` have passed."""
        over = asyncio.Event()
        self._waiters.setdefault(ident, set()).add(over)
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                over.clear()
                if await self.context.db.aread(lambda c: c.execute(_STATE, {"id": ident}).scalar()) not in ledger.OPEN:
                    return
                with contextlib.suppress(TimeoutError):  # the poll is for work that another server does
                    await asyncio.wait_for(over.wait(), left if self.context.db.sqlite else min(left, 0.5))
        finally:
            self._waiters[ident].discard(over)
            if not self._waiters[ident]:
                del self._waiters[ident]

    def news(self, name: str) -> Mapping[str, Any] | None:
        """What is known of a running job beyond its row: progress, message."""
        return self._news.get(name)

    def seconds_left(self, conn: Connection, row: Row[Any], progress: float) -> float:
        """Measured throughput against what is before it and what is left of it."""
        left = row.cost * (1 - progress)
        if row.state == "queued" and row.id not in self._news:
            left += self.waiting.ahead(conn, row)
        return round(float(left) / max(self.throughput, 0.1), 1)

    # --- the ledger's side

    async def _claim_loop(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._claim()
            except FanlightError as e:
                log.warning("ledger not reachable", problem=e.message)
            except Exception:
                log.exception("jobs could not be claimed")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), 1.0)

    async def _claim(self) -> None:
        held = Counter(row.kind for row in self._held.values())
        limits = {kind: limit * self.workers for kind, limit in turns.HELD.items()}
        most = {kind: limit - held[kind] for kind, limit in limits.items() if held[kind] < limit}
        if not most or not await self.context.db.aread(lambda c: claims.any_free(c, most)):
            return
        turn = turns.turn(self.throughput)

        def room(kind: str, priority: int) -> claims.Room:
            return turns.room(list(self._held.values()), kind, priority, workers=self.workers, turn=turn)

        rows = await self.context.db.awrite(lambda c: claims.claim(c, self.owner, most, room=room, quantum=turn))
        for row in rows:
            self._held[row.id] = row
            self._tasks[row.id] = asyncio.create_task(self._attend(row))

    async def _renew_loop(self) -> None:
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            try:
                held = list(self._tasks)
                await self.context.db.awrite(lambda c, h=held: self._sweep(c, h))  # type: ignore[misc]
                if time.monotonic() - renewed > RENEW:
                    for name in await self.context.db.awrite(lambda c, h=held: ledger.renew(c, self.owner, h)):  # type: ignore[misc]
                        self.stop(name)
                    renewed = time.monotonic()
                    health = await self.context.engine.health()
                    self.throughput = float(health.detail.get("throughput") or self.throughput)
                    self.workers = max(1, int(health.detail.get("replicas", 1)))
            except FanlightError as e:
                log.warning("ledger not reachable", problem=e.message)
            except Exception:
                log.exception("leases could not be renewed")

    def _sweep(self, conn: Connection, held: Collection[str]) -> None:
        """Frees what dead servers held; ends what nobody works on and what is over: cancelled before it was claimed, or past its deadline."""
        self._reclaim(conn, held)
        for row in ledger.overdue(conn):
            state = "cancelled" if row.cancel_requested else "expired"
            error = (
                None
                if state == "cancelled"
                else {"code": "deadline", "message": "The job was not started before its deadline."}
            )
            ledger.close(conn, [row.id], state, error)
            self._closed(conn, row, state, error)

    def _reclaim(self, conn: Connection, held: Collection[str], *, dead: bool = False) -> None:
        doomed = ledger.reclaim(conn, held=held, dead=dead)
        error = {
            "code": "worker_crashed",
            "message": f"The server ended {ledger.MAX_CRASHES} times while it worked on this job.",
        }
        ledger.close(conn, [r.id for r in doomed], "failed", error)
        for row in doomed:
            self._closed(conn, row, "failed", error)

    # --- one job

    async def _attend(self, row: Row[Any]) -> None:
        """Sees one attempt through; whatever happens, the job is settled or back in the queue afterwards."""
        name = row.id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(job=name, attempt=row.attempt)
        try:
            await self._follow(row)
        except asyncio.CancelledError:
            with contextlib.suppress(FanlightError):
                await self._give_back(row, None)
            raise
        except Exception as e:
            if isinstance(e, Unavailable):
                log.warning("job given back", job=name, problem=e.message)
            else:
                log.exception("job could not be written down", job=name)
            await self._abandon(name)
            with contextlib.suppress(FanlightError):
                await self._give_back(row, None if isinstance(e, Unavailable) else e)
            await asyncio.sleep(0.5)
        finally:
            for kept in (self._handles, self._held, self._news, self._tasks):
                kept.pop(name, None)
            self._wake.set()

    async def _follow(self, row: Row[Any]) -> None:
        """From submission to the last event."""
        name, attempt = row.id, row.attempt
        left = None if row.deadline is None else max(0.0, (row.deadline - row.claimed) / 1e6)
        work = Work.of({**row.work, "job": name, "attempt": attempt, "priority": row.priority, "deadline": left})
        begun = noted = time.monotonic()
        handle = self._handles[name] = await self.context.engine.submit(work)
        async for event in handle.events():
            if event.kind == "started":
                noted = time.monotonic()
                self._begun.append(row)
                if len(self._begun) == 1:  # those of its batch follow at once, and are written down with it
                    self._aside(self._note_begun())
            elif event.kind == "progress":
                self._news[name] = {"progress": event.data["done"], "message": event.data["message"]}
                shown = {"preview": event.data["preview"]} if "preview" in event.data else {}
                self._tell(row, "running", {**self._news[name], **shown})
                if time.monotonic() - noted > NOTE:
                    noted = time.monotonic()
                    self._aside(self._note(row, event.data["done"], event.data["message"]))
            elif event.kind == "predicted" and work.target is None and work.kind == "explain":
                await self._write(lambda c, d=event.data: predicted(self.context, c, row, d))
            elif event.last:
                await self._end(row, event.kind, event.data, begun)

    async def _note_begun(self) -> None:
        """Who is to blame if the server dies; the result does not wait for it."""
        await asyncio.sleep(TOGETHER)
        rows, self._begun = self._begun, []
        with contextlib.suppress(FanlightError):
            await self.context.db.awrite(lambda c: ledger.started(c, self.owner, rows))

    async def _note(self, row: Row[Any], done: float, message: str) -> None:
        with contextlib.suppress(FanlightError):
            await self.context.db.awrite(lambda c: ledger.progress(c, row.id, row.attempt, self.owner, done, message))

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _abandon(self, name: str) -> None:
        """Has the engine end an attempt that nobody follows any more, so that the job can be submitted again."""
        handle = self._handles.pop(name, None)
        if handle is not None:
            await handle.cancel()
            async for _ in handle.events():
                pass

    async def _give_back(self, row: Row[Any], error: Exception | None) -> None:
        """Back to the queue; or, where it was tried often enough, failed with `error`."""

        def act(conn: Connection) -> None:
            if ledger.release(conn, row.id, row.attempt, self.owner, crashed=error is not None) or error is None:
                return
            known = error if isinstance(error, FanlightError) else None
            shown = known or ComputeFailed("The result could not be written down.", hint="See the server's log.")
            body = shown.body()["error"]
            if ledger.settle(conn, row.id, row.attempt, self.owner, "failed", body):
                self._closed(conn, row, "failed", body)

        await self._write(act)

    async def _write(self, fn: Any) -> Any:
        """A write that may be retried: a database that is away for a moment must not cost a finished result."""
        for wait in (0.1, 0.5, 2.0, 5.0, None):
            try:
                return await self.context.db.awrite(fn)
            except Unavailable:
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def _end(self, row: Row[Any], kind: str, data: Mapping[str, Any], begun: float) -> None:
        name, attempt = row.id, row.attempt

        def act(conn: Connection) -> None:
            if kind == "done":
                if ledger.settle(conn, name, attempt, self.owner, "succeeded"):
                    finished(self.context, conn, row, data)
                    self._event(conn, row, "succeeded")
                return
            if kind == "failed" and data.get("retryable"):
                crashed = data["code"] == "worker_crashed"
                if ledger.release(conn, name, attempt, self.owner, crashed=crashed):
                    return
            if kind == "cancelled" and ledger.wanted(conn, name):  # somebody came back in time, or another server asked
                ledger.release(conn, name, attempt, self.owner, crashed=False)
                return
            state = "cancelled" if kind == "cancelled" else "expired" if data.get("code") == "deadline" else "failed"
            error = None if state == "cancelled" else {k: v for k, v in data.items() if k != "retryable"}
            if ledger.settle(conn, name, attempt, self.owner, state, error):
                self._closed(conn, row, state, error)

        if kind == "done" and row.recomputes is not None and row.kind == "explain":
            data = {**data, "verified": await asyncio.to_thread(verified, self.context, row, data)}
        await self._write(act)
        self._count(row, kind, data, time.monotonic() - begun)
        for over in self._waiters.get(row.explanation, ()):
            over.set()
        self.context.bus.tick()

    def _count(self, row: Row[Any], kind: str, data: Mapping[str, Any], seconds: float) -> None:
        self.seen += 1
        if kind == "failed":
            meters.failures.labels(str(data["code"])).inc()
        meters.ended.labels(row.kind, kind).inc()
        meters.job_seconds.labels(row.kind).observe(seconds)
        log.info("job ended", kind=row.kind, how=kind, code=data.get("code"), seconds=round(seconds, 3))

    def _closed(self, conn: Connection, row: Row[Any], state: str, error: Mapping[str, Any] | None) -> None:
        """The record of a job that ended without a result."""
        if row.kind != "explain":
            unmeasured(conn, row, state, error)
        else:
            values: dict[str, Any] = {"state": state, "live": False, "error": error, "finished": now(conn)}
            conn.execute(update(explanation).where(explanation.c.id == row.explanation).values(**values))
        self._event(conn, row, state)

    def _event(self, conn: Connection, row: Row[Any], state: str) -> None:
        ledger.emit(
            conn,
            row.workspace,
            {
                "type": "job",
                "id": row.id,
                "explanation": row.explanation,
                "kind": row.kind,
                "state": state,
                "progress": 1.0,
            },
        )

    def _tell(self, row: Row[Any], state: str, news: Mapping[str, Any]) -> None:
        left = round(row.cost * (1 - news["progress"]) / max(self.throughput, 0.1), 1)
        data = {
            "type": "job",
            "id": row.id,
            "explanation": row.explanation,
            "kind": row.kind,
            "state": state,
            "seconds_left": left,
            **news,
        }
        self.context.bus.publish(row.workspace, data)
