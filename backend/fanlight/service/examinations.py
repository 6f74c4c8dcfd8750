"""The doctor at work for a page: a model is loaded and run in a process of its own, as `fanlight doctor MODEL` does it, and what was found is kept.

One at a time: it takes a second copy of the model and a good part of a core, so it also gives way to everything else on the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Connection, delete, insert, select

from fanlight import wire
from fanlight.doctor import Report, model as doctor
from fanlight.errors import TooBusy
from fanlight.service.context import Context, Visitor
from fanlight.store.database import now
from fanlight.store.tables import examination

log = structlog.get_logger()
SECONDS = 60.0  # of running methods; what takes longer is projected
GENTLY = 10  # added to the niceness of its process


@dataclass
class _Running:
    model: str
    digest: str
    workspace: str
    since: float
    task: asyncio.Task[None]


class Examinations:
    """Args: context. Only for use from the event loop; `close` belongs to the application's lifespan."""

    def __init__(self, context: Context):
        self.context = context
        self._running: _Running | None = None

    async def start(self, who: Visitor, name: str) -> wire.Examination:
        """Begins to examine a model unless that is going on. Errors: unknown_model; too_busy where another one is examined."""
        model = self.context.models.find(name)
        running = self._running
        if running is not None and (running.digest, running.workspace) != (model["digest"], who.workspace):
            known = running.workspace == who.workspace
            which = f"“{self.context.models.name_of(running.model)}”" if known else "Another model"
            raise TooBusy(
                f"{which} is being examined; one model is examined at a time.",
                retry_after=10,
                hint="Try again in a minute.",
            )
        if self._running is None:
            await self.context.db.awrite(lambda c: who.did(c, "model.examine", name))
        if self._running is None:  # nobody was quicker meanwhile
            task = asyncio.create_task(self._examine(who, model))
            self._running = _Running(name, model["digest"], who.workspace, time.time(), task)
        return await self.get(who, name)

    async def get(self, who: Visitor, name: str) -> wire.Examination:
        """How it stands with a model. Errors: unknown_model."""
        digest = self.context.models.find(name)["digest"]
        running = self._running
        if running is not None and (running.digest, running.workspace) == (digest, who.workspace):
            return wire.Examination(state="running", model=name, since=running.since, seconds=SECONDS)
        mine = (examination.c.workspace == who.workspace) & (examination.c.model_digest == digest)
        row = await self.context.db.aread(lambda c: c.execute(select(examination).where(mine)).first())
        if row is None:
            return wire.Examination(state="none", model=name, seconds=SECONDS)
        return _told(name, Report.of(row.report), row.finished / 1e6)

    async def close(self) -> None:
        if self._running is not None:
            self._running.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running.task

    async def _examine(self, who: Visitor, model: dict[str, Any]) -> None:
        try:
            report = await _run(model["given"])
            row = {"workspace": who.workspace, "model_digest": model["digest"], "principal": who.principal}

            def save(conn: Connection) -> None:
                same = (examination.c.workspace == who.workspace) & (examination.c.model_digest == model["digest"])
                conn.execute(delete(examination).where(same))
                conn.execute(insert(examination), {**row, "report": report.json(), "finished": now(conn)})

            await self.context.db.awrite(save)
        except Exception:
            log.exception("examination failed", model=model["id"])
        finally:
            self._running = None


async def _run(source: str) -> Report:
    """The report of a process of its own, which ends with this task."""
    process = await asyncio.create_subprocess_exec(
        *doctor.command(source, SECONDS, gently=GENTLY),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
        env={**os.environ},
    )
    try:
        out, said = await asyncio.wait_for(process.communicate(), doctor.PATIENCE)
    except TimeoutError:
        return doctor.too_long(source)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert process.returncode is not None
    return doctor.told(source, process.returncode, out.decode(errors="replace"), said.decode(errors="replace"))


def _told(name: str, report: Report, finished: float) -> wire.Examination:
    details = report.details
    return wire.Examination(
        state="done",
        model=name,
        seconds=SECONDS,
        finished=finished,
        sound=report.sound,
        checks=[wire.Finding(name=c.name, outcome=c.outcome, says=c.says, hint=c.hint) for c in report.checks],
        costs=[wire.Cost(**{k: e[k] for k in wire.Cost.model_fields if k in e}) for e in details.get("explainers", [])],
        forward_seconds=details.get("forward_seconds"),
        device=details.get("device", ""),
    )
