"""Keeps trials going: a batch of each in turn, edit by edit through the engine's seam for live edits, beside running work.

Only one edit is asked for at a time, so that whoever drags a slider waits for one of them at most. Results are written a batch at a time, where
they are still waited for: what a crash loses of a batch is computed again, to the same numbers. A server takes a trial by a lease, so that where
several share a database each batch is computed once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import structlog
from sqlalchemy import Connection, Row, or_, select, update

from fanlight.engine.base import Work
from fanlight.errors import FanlightError, NotFound, TooBusy, Unavailable
from fanlight.service import trials, trials_figures
from fanlight.service.context import Context
from fanlight.store.database import now
from fanlight.store.tables import explanation
from fanlight.store.tables_trials import trial, trial_item

log = structlog.get_logger()

BATCH = 24
BATCH_SECONDS = 2.0
LEASE = 10 * trials.SECOND  # a batch takes two; whoever died lets go after this
IDLE = 2.0  # seconds between two looks: another server may have been asked, or have died
AGAIN = 1.0  # seconds after which an engine that is not ready is asked again
GONE = ("model_changed", "unknown_model", "unknown_explainer")
"""Errors that every further item would end with too."""

Found = dict[str, Any]
_RUNNING = select(trial.c.id).where(trial.c.state == "running").limit(1)


class Trier:
    """Args: context. `start` and `stop` belong to the application's lifespan."""

    def __init__(self, context: Context):
        self.context = context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._woken.set()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """From any thread: a trial was asked for."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def _keep(self) -> None:
        while not self._stopped:
            pause = IDLE
            try:
                if self.context.models.ready.is_set() and await self.step():
                    continue
            except (TooBusy, Unavailable):
                pause = AGAIN
            except FanlightError as e:
                log.warning("trials wait", problem=e.message)
            except Exception:
                log.exception("trials could not go on")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), pause)
            self._woken.clear()

    async def step(self) -> bool:
        """One batch of the trial whose turn it is; whether there was one. Errors: Unavailable, TooBusy of an engine that is not ready."""
        if not await self.context.db.aread(lambda c: c.execute(_RUNNING).first()):
            return False  # looking costs no write
        row, batch = await self.context.db.awrite(self._taken)
        if row is None:
            return False
        begun, done, problem = time.monotonic(), [], None
        try:
            for item in batch:
                if self._stopped or time.monotonic() - begun > BATCH_SECONDS:
                    break
                try:
                    done.append(await self._one(row, item))
                except FanlightError as e:
                    if isinstance(e, (TooBusy, Unavailable)):
                        raise
                    if e.code in GONE:
                        problem = e.message
                        break
                    done.append(_failed(item, e.message))
        finally:
            spent = int((time.monotonic() - begun) * trials.SECOND)
            await self.context.db.awrite(lambda c: self._kept(c, row, done, spent, problem))
        return True

    def _taken(self, conn: Connection) -> tuple[Row[Any] | None, list[Row[Any]]]:
        """The running trial that has waited longest and that nobody works on, and what is next of it."""
        t, me = now(conn), self.context.db.name
        free = or_(trial.c.owner.is_(None), trial.c.owner == me, trial.c.lease_until < t)
        row = conn.execute(
            select(trial).where(trial.c.state == "running", free).order_by(trial.c.turn, trial.c.id).limit(1)
        ).first()
        if row is None:
            return None, []
        taken = {"owner": me, "lease_until": t + LEASE, "turn": t}
        conn.execute(update(trial).where(trial.c.id == row.id).values(**taken))
        e = explanation.c
        waiting = (
            select(
                trial_item.c.position, trial_item.c.label, e.id.label("there"), e.model, e.model_digest, e.explainer, e.explainer_version,
                e.params, e.target, e.seed, e.numerics, e.artifacts, e.top_class, e.top_probability,
            )
            .outerjoin(explanation, e.id == trial_item.c.explanation)
            .where(trial_item.c.trial == row.id, trial_item.c.state == "waiting")
            .order_by(trial_item.c.position)
            .limit(BATCH)
        )  # fmt: skip
        return row, list(conn.execute(waiting))

    async def _one(self, row: Row[Any], item: Row[Any]) -> Found:
        """The prediction of one stored explanation after the edits."""
        if item.there is None or not item.artifacts:
            return _failed(item, "The explanation was deleted.")
        model = self.context.models.find(item.model)
        if model["digest"] != item.model_digest:
            raise NotFound("The model is no longer the one that the sweep explained.", code="model_changed")
        found = await self.context.engine.edit(
            Work(
                job="",
                attempt=0,
                kind="edit",
                model={"id": item.model, "digest": item.model_digest, "source": model["source"], "size": model["size"]},
                input="",
                explainer=item.explainer,
                version=item.explainer_version,
                params=item.params,
                target=item.target,
                seed=item.seed,
                numerics=item.numerics,
                edits=tuple(row.edits),
                artifacts={a["name"]: a["digest"] for a in item.artifacts},
            )
        )
        top = found["prediction"][0]
        return {
            "position": item.position,
            "state": "done",
            "before": item.top_class,
            "before_probability": item.top_probability,
            "after": top["name"],
            "after_probability": top["probability"],
            "move": trials_figures.move(item.label, item.top_class, top["name"]),
        }

    def _kept(self, conn: Connection, row: Row[Any], done: list[Found], spent: int, problem: str | None) -> None:
        """Writes a batch where the trial still runs and is still this server's; ends it where nothing is left."""
        mine = (trial.c.id == row.id, trial.c.state == "running", trial.c.owner == self.context.db.name)
        more = {"owner": None, "lease_until": None, "spent": trial.c.spent + spent}
        if not conn.execute(update(trial).where(*mine).values(**more)).rowcount:
            return
        for found in done:
            this = (trial_item.c.trial == row.id, trial_item.c.position == found.pop("position"))
            conn.execute(update(trial_item).where(*this, trial_item.c.state == "waiting").values(**found))
        if problem is not None:
            return trials.end(conn, row.id, "failed", problem)
        left = select(trial_item.c.position).where(trial_item.c.trial == row.id, trial_item.c.state == "waiting")
        if conn.execute(left.limit(1)).first() is None:
            trials.end(conn, row.id, "done")


def _failed(item: Row[Any], reason: str) -> Found:
    return {"position": item.position, "state": "failed", "reason": reason}
