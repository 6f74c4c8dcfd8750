"""Keeps sweeps going: notes what has ended, asks for what comes next, a bounded number at a time.

Back-pressure: of each sweep at most WINDOW items are jobs, of all together about TOGETHER, whatever their measurement of trust takes; so the
ledger stays short and people's own work goes ahead of it. Where several servers share a database all of them do this: an item is taken in
the transaction that promises its explanation, so it is taken once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy import Connection, Row, func, select, update

from fanlight import wire
from fanlight.engine.base import BULK
from fanlight.errors import FanlightError, NotFound, TooBusy, Unavailable
from fanlight.service import studies, sweeps
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import Promise, submit
from fanlight.store import ledger
from fanlight.store.database import now
from fanlight.store.tables import explanation, sweep, sweep_item

log = structlog.get_logger()

WINDOW = 16
TOGETHER = 32
LEAST = 0.1  # seconds between two looks, however much happens
IDLE = 2.0  # seconds between two looks where nothing is heard: another server may have begun a sweep
CLOCK = 5.0  # seconds after which the time that a sweep has run is written down
GONE = ("unknown_model", "unknown_explainer", "not_available", "invalid_params")
"""Errors that every further item would end with too."""


class _Taken(Exception):
    """Somebody else has taken the item, or the sweep no longer runs: nothing is written."""


class Sweeper:
    """Args: context. `start` and `stop` belong to the application's lifespan."""

    def __init__(self, context: Context):
        self.context = context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard = context.bus.ear()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._written: dict[str, float] = {}

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._rouse()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        """From any thread: a sweep has begun or goes on."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._rouse)

    def _rouse(self) -> None:
        self._heard.set()
        self._woken.set()

    async def _keep(self) -> None:
        await asyncio.to_thread(self._begin)
        busy = True
        while not self._stopped:
            try:
                busy = await asyncio.to_thread(self.step)
            except FanlightError as e:
                log.warning("sweeps wait", problem=e.message)
            except Exception:
                log.exception("sweeps could not go on")
            await asyncio.sleep(LEAST)
            ear = self._heard if busy else self._woken  # without a sweep, what happens elsewhere is no concern
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ear.wait(), IDLE)
            self._heard.clear()
            self._woken.clear()

    def _begin(self) -> None:
        """The time in which no server ran does not count."""
        with contextlib.suppress(FanlightError):
            self.context.db.write(
                lambda c: c.execute(update(sweep).where(sweep.c.state == "running").values(since=now(c)))
            )

    def step(self) -> bool:
        """Looks after every sweep once; whether there is any."""
        if not self.context.models.ready.is_set():
            return True
        wanted = select(sweep).where(sweep.c.state.in_(sweeps.ACTIVE)).order_by(sweep.c.created)
        rows = self.context.db.read(lambda c: list(c.execute(wanted)))
        windows = shared([(r.id, r.workspace) for r in rows if r.state == "running"])
        for row in rows:
            if self._stopped:
                break
            self._settle(row)
            if row.state == "running":
                self._feed(row, windows[row.id])
            self._finish(row)
        return bool(rows)

    # --- what has ended

    def _settle(self, row: Row[Any]) -> None:
        """Items whose explanation is over, or measured."""
        e = explanation.c
        wanted = (
            select(sweep_item.c.position, sweep_item.c.state, e.state.label("now"), e.trust_class, e.error)
            .outerjoin(explanation, e.id == sweep_item.c.explanation)
            .where(sweep_item.c.sweep == row.id, sweep_item.c.state.in_(sweeps.OPEN))
        )
        found = self.context.db.read(lambda c: list(c.execute(wanted)))
        changes = [(r.position, r.state, *ended(r.now, r.trust_class, r.error)) for r in found]
        changes = [c for c in changes if c[2] != c[1]]
        if not changes:
            return

        def act(conn: Connection) -> None:
            t = now(conn)
            for position, before, after, reason in changes:
                this = (sweep_item.c.sweep == row.id, sweep_item.c.position == position, sweep_item.c.state == before)
                over = None if after in sweeps.AHEAD else t
                conn.execute(update(sweep_item).where(*this).values(state=after, reason=reason, finished=over))

        self.context.db.write(act)

    def _finish(self, row: Row[Any]) -> None:
        """Ends a sweep of which nothing is left; now and then writes down how long it has run."""
        ahead = (sweep_item.c.sweep == row.id, sweep_item.c.state.in_(sweeps.AHEAD))
        if self.context.db.read(lambda c: c.execute(select(sweep_item.c.position).where(*ahead).limit(1)).first()):
            if row.state == "running" and time.monotonic() - self._written.get(row.id, 0) > CLOCK:
                self._written[row.id] = time.monotonic()
                self.context.db.write(lambda c: _wind(c, row.id))
            return
        self._written.pop(row.id, None)

        def act(conn: Connection) -> None:
            current = conn.execute(select(sweep).where(sweep.c.id == row.id)).first()
            if (
                current is not None
                and conn.execute(select(sweep_item.c.position).where(*ahead).limit(1)).first() is None
            ):
                sweeps.close(conn, current)

        self.context.db.write(act)
        self.context.bus.tick()

    # --- what comes next

    def _feed(self, row: Row[Any], window: int) -> None:
        def act(conn: Connection) -> list[Row[Any]]:
            mine = sweep_item.c.sweep == row.id
            held = conn.execute(
                select(func.count()).select_from(sweep_item).where(mine, sweep_item.c.state.in_(sweeps.OPEN))
            ).scalar_one()
            wanted = select(sweep_item).where(mine, sweep_item.c.state == "waiting").order_by(sweep_item.c.position)
            return list(conn.execute(wanted.limit(max(0, window - int(held)))))

        coming = self.context.db.read(act)
        if not coming:
            return
        request = wire.SweepRequest.model_validate(row.spec)
        try:
            model = self.context.models.find(row.model)
        except NotFound as e:
            return self._halt(row, e.message)
        if model["digest"] != row.model_digest:
            return self._halt(row, "The model is no longer the one that the sweep began with.")
        for item in coming:
            if self._stopped:
                return
            try:
                self._ask(row, request, item)
            except (TooBusy, Unavailable):
                return  # tried again at the next look
            except _Taken:
                continue
            except FanlightError as e:
                if e.code in GONE:
                    return self._halt(row, e.message)
                self._note(row, item, "failed", e.message)

    def _ask(self, row: Row[Any], request: wire.SweepRequest, item: Row[Any]) -> None:
        visitor = Visitor(row.principal, row.workspace)
        target, asked = request.target, studies.Asked(item.input or "", request.params, request.seed)
        if request.source.words is not None:
            asked = studies.asked(self.context, visitor, request, row.explainer, item.position)
        if request.rule == "label":
            index = None if item.label is None else self._class(row.model, item.label)
            if index is None:
                why = (
                    "It has no label." if item.label is None else f"Its label “{item.label}” is no class of the model."
                )
                return self._note(row, item, "skipped", why)
            target = index

        def within(conn: Connection, promise: Promise) -> None:
            known = conn.execute(
                select(explanation.c.state, explanation.c.trust_class).where(explanation.c.id == promise.id)
            ).one()
            made = promise.state == "queued" and promise.fresh
            state = ended(known.state, known.trust_class, None)[0]
            hit = conn.execute(
                update(sweep_item)
                .where(
                    sweep_item.c.sweep == row.id,
                    sweep_item.c.position == item.position,
                    sweep_item.c.state == "waiting",
                    select(sweep.c.id).where(sweep.c.id == row.id, sweep.c.state == "running").exists(),
                )
                .values(
                    state=state,
                    explanation=promise.id,
                    input=asked.input,
                    reused=not made,
                    finished=now(conn) if state == "succeeded" else None,
                )
            ).rowcount
            if not hit:
                raise _Taken
            if not made:  # so that the gallery lists it with this sweep
                ledger.emit(conn, row.workspace, {"type": "changed", "explanation": promise.id})

        submit(
            self.context,
            visitor,
            wire.ExplanationRequest(
                model=row.model,
                input=asked.input,
                explainer=row.explainer,
                target=target,
                params=dict(asked.params),
                seed=asked.seed,
            ),
            priority=BULK,
            within=within,
        )

    def _class(self, model: str, label: str) -> int | None:
        """The class of a label; None where no class, or more than one, has this name."""
        names = [sweeps.plain(c) for c in self.context.models.find(model)["classes"]]
        wanted = sweeps.plain(label)
        return names.index(wanted) if names.count(wanted) == 1 else None

    def _note(self, row: Row[Any], item: Row[Any], state: str, reason: str) -> None:
        this = (sweep_item.c.sweep == row.id, sweep_item.c.position == item.position, sweep_item.c.state == "waiting")
        self.context.db.write(
            lambda c: c.execute(update(sweep_item).where(*this).values(state=state, reason=reason, finished=now(c)))
        )

    def _halt(self, row: Row[Any], problem: str) -> None:
        self.context.db.write(lambda c: sweeps.halt(c, row, problem))


def shared(running: Sequence[tuple[str, str]]) -> dict[str, int]:
    """How many items of each sweep may be jobs: workspaces share the room, and the sweeps in one share its part, so that each has something
    waiting when its turn comes (store/claims). Args: running: (sweep, workspace)."""
    beside = Counter(workspace for _, workspace in running)
    return {ident: max(1, min(WINDOW, TOGETHER // len(beside) // beside[workspace])) for ident, workspace in running}


def ended(state: str | None, trust: str | None, error: Any) -> tuple[str, str | None]:
    """The state of an item from its explanation's, and why where there is no result. Args: state: None where the explanation is gone."""
    match state:
        case None:
            return "failed", "The explanation was deleted before it was measured."
        case "succeeded":
            return ("measuring" if trust == "pending" else "succeeded"), None
        case "queued" | "running":
            return "submitted", None
        case "cancelled":
            return "cancelled", "Its job was cancelled."
    return "failed", str((error or {}).get("message") or "The computation ended without a result.")


def _wind(conn: Connection, ident: str) -> None:
    """So that a crash loses at most some seconds of the time that a sweep has run."""
    t = now(conn)
    running = (sweep.c.id == ident, sweep.c.state == "running", sweep.c.since.is_not(None))
    conn.execute(update(sweep).where(*running).values(spent=sweep.c.spent + (t - sweep.c.since), since=t))
