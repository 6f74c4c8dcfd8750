"""Derivations: models made of models, as jobs in a process of their own, one at a time. docs/decisions/0013-derived-models.md says why so.

A job is a folder: `request.json` and `work.json` are there, durably, before the answer; `outcome.json` is what its process came to, with `finished`
once the server has taken note of it. What is not finished when a server starts is gone on with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, select

from fanlight import bundles, wire
from fanlight.errors import Conflict, Forbidden, InvalidField, NotFound, TooBusy, unknown
from fanlight.service.context import WORKSPACE, Context, Visitor
from fanlight.service.shelf import absent
from fanlight.store import audit, ledger
from fanlight.store.tables import dataset, input_, sample

log = structlog.get_logger()

TASK = "prototype-classifier"
MOST_WAITING = 10
JOBS = ".jobs"
MOST = 20_000  # pictures


class Derivations:
    """Args: context. Only for use from the event loop; `start` and `close` belong to the application's lifespan."""

    def __init__(self, context: Context):
        self.context = context
        self.folder = bundles.derived(context.settings.data_dir) / JOBS
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._now: tuple[str, float, str] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Goes on with what was asked for before."""
        for name in self._open():
            self._waiting.put_nowait(name)
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    # --- asked for and looked at

    async def create(self, who: Visitor, model: str, request: wire.DerivationRequest) -> wire.Derivation:
        """Errors: unknown_model, not_available, unknown_dataset, no_labels, too_busy."""
        if who.workspace != WORKSPACE and not who.operator:
            raise Forbidden(
                "A model that is made of another is offered to the whole server, so those who run it make it.",
                code="scope",
                given=who.workspace,
            )
        known = self.context.models.find(model)
        if known["task"] != TASK or "bundle" not in known["source"]:
            raise Conflict(
                f"“{known['name']}” answers by no prototypes, so none can be taken out.",
                code="not_available",
                given=known["task"],
                allowed=TASK,
            )
        if len(self._open()) >= MOST_WAITING:
            raise TooBusy(f"{MOST_WAITING} derivations are waiting.", retry_after=60, allowed=MOST_WAITING)
        data, pictures = await self.context.db.aread(lambda c: _pictures(self.context, c, who, request.dataset))
        name = ledger.new_id()
        change = request.change.model_dump(exclude_none=True)
        asked = {
            "id": name, "workspace": who.workspace, "principal": who.principal, "model": model, "model_name": known["name"],
            "model_digest": known["digest"], "change": change, "dataset": request.dataset, "created": time.time(),
        }  # fmt: skip
        work = {
            "job": name,
            "bundle": _absolute(known["source"]["bundle"]),
            "change": change,
            "dataset": {"name": data.name, "digest": data.digest},
            "pictures": pictures,
            "artifacts": str(self.context.settings.artifacts),
            "into": _absolute(self.folder.parent),
        }
        await asyncio.to_thread(_write, self.folder / name, {"work.json": work, "request.json": asked})
        await self.context.db.awrite(
            lambda c: audit.note(c, who.workspace, who.principal, "model.derive", model, {"derivation": name, **change})
        )
        self._waiting.put_nowait(name)
        return self.one(who, name)

    def one(self, who: Visitor, name: str) -> wire.Derivation:
        asked = _read(self.folder / name / "request.json") if name.isalnum() else None
        if asked is None or asked["workspace"] != who.workspace:
            raise unknown("derivation", name, [], hint="GET /api/v1/derivations lists them.")
        return self._wire(who, asked)

    def listed(self, who: Visitor) -> list[wire.Derivation]:
        """Newest first."""
        every = [_read(p) for p in self.folder.glob("*/request.json")]
        mine = [a for a in every if a is not None and a["workspace"] == who.workspace]
        return [self._wire(who, a) for a in sorted(mine, key=lambda a: -a["created"])]

    async def cancel(self, who: Visitor, name: str) -> wire.Derivation:
        """Ends one that is waiting or running. Errors: unknown_derivation, derivation_over."""
        found = self.one(who, name)
        if found.state not in ("queued", "running"):
            raise Conflict(f"This derivation is over: {found.state}.", code="derivation_over", given=name)
        await asyncio.to_thread(
            _write, self.folder / name, {"outcome.json": {"cancelled": True, "finished": time.time()}}
        )
        await self.context.db.awrite(lambda c: who.did(c, "derivation.cancel", name, model=found.model))
        if self._now is not None and self._now[0] == name and self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        return self.one(who, name)

    def _wire(self, who: Visitor, asked: Mapping[str, Any]) -> wire.Derivation:
        outcome = self._over(asked["id"])
        running = self._now is not None and self._now[0] == asked["id"]
        progress, message = (self._now[1], self._now[2]) if running and self._now is not None else (0.0, "")
        state: Any = "running" if running else "queued"
        more: dict[str, Any] = {}
        if outcome is not None:
            state = "cancelled" if "cancelled" in outcome else "failed" if "problem" in outcome else "done"
            progress, message = 1.0, ""
            more = {"problem": outcome.get("problem"), "finished": outcome.get("finished")}
        if state == "done" and outcome is not None:
            effect = wire.Effect(**{k: outcome[k] for k in wire.Effect.model_fields if k in outcome})
            named = self.context.models.of_folder(outcome["bundle"])
            more |= {"effect": effect, "result": named, "result_name": outcome["name"]}
        return wire.Derivation(
            id=asked["id"],
            model=asked["model"],
            model_name=asked["model_name"],
            change=wire.Change(**asked["change"]),
            dataset=asked["dataset"],
            state=state,
            progress=progress,
            message=message,
            mine=asked["principal"] == who.principal,
            created=asked["created"],
            **more,
        )

    # --- done

    def _open(self) -> list[str]:
        """What is not finished, oldest first."""
        found = [p.parent for p in self.folder.glob("*/request.json") if self._over(p.parent.name) is None]
        return [p.name for p in sorted(found, key=lambda p: (p / "request.json").stat().st_mtime)]

    def _over(self, name: str) -> dict[str, Any] | None:
        """What a finished job came to."""
        outcome = _read(self.folder / name / "outcome.json")
        return outcome if outcome is not None and "finished" in outcome else None

    async def _keep(self) -> None:
        await self.context.models.ready.wait()
        while True:
            name = await self._waiting.get()
            try:
                await self._one(name)
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("derivation failed", derivation=name)
                self._end(name, {"problem": "It could not be computed; the log of the server says why."})
            finally:
                self._now = self._process = None

    async def _one(self, name: str) -> None:
        place = self.folder / name
        if self._over(name) is not None:
            return
        if (there := _read(place / "outcome.json")) is not None:  # the server died before it took note
            return await self._note(name, there)
        asked = _read(place / "request.json") or {}
        try:
            model = self.context.models.find(asked["model"])
        except NotFound as e:
            return self._end(name, {"problem": e.message})
        if model["digest"] != asked["model_digest"]:
            return self._end(name, {"problem": "The model is no longer the one that was to be changed."})
        self._now = (name, 0.0, "starting")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fanlight.derive", str(place),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            said, _ = await asyncio.gather(_tail(self._process), self._follow(name, self._process))
            code = await self._process.wait()
        finally:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
        outcome = _read(place / "outcome.json")
        if outcome is None:
            return self._end(name, {"problem": f"Its process ended early ({code}). {said}".strip()})
        if self._over(name) is None:  # else it was cancelled meanwhile
            await self._note(name, outcome)

    async def _note(self, name: str, outcome: Mapping[str, Any]) -> None:
        """Offers the model that was made, then says that it is done."""
        if "bundle" in outcome and self.context.models.of_folder(outcome["bundle"]) is None:
            await self.context.models.add(outcome["bundle"])
        self._end(name, outcome)

    async def _follow(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with contextlib.suppress(ValueError, KeyError):
                said = json.loads(line)
                self._now = (name, float(said["progress"]), str(said["message"]))

    def _end(self, name: str, outcome: Mapping[str, Any]) -> None:
        _write(self.folder / name, {"outcome.json": {**outcome, "finished": time.time()}})


def _absolute(path: str | Path) -> str:
    return str(Path(path).resolve())


async def _tail(process: asyncio.subprocess.Process) -> str:
    """The last line that it complained with."""
    assert process.stderr is not None
    lines = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _pictures(context: Context, conn: Connection, who: Visitor, name: str) -> tuple[Any, list[list[Any]]]:
    """The data set's row, and name, label and blob of its pictures. Errors: unknown_dataset, no_labels, too_many_items."""
    known = conn.execute(select(dataset).where(dataset.c.workspace == who.workspace)).all()
    found = next((d for d in known if d.id == name), None)
    if found is None:
        raise absent(context, who, name, [d.id for d in known])
    rows = conn.execute(
        select(sample.c.name, sample.c.label, input_.c.blob)
        .join(input_, (input_.c.workspace == sample.c.workspace) & (input_.c.id == sample.c.input))
        .where(sample.c.workspace == who.workspace, sample.c.dataset == name)
        .order_by(sample.c.position)
    ).all()
    if not any(r.label is not None for r in rows):
        raise InvalidField(
            f"“{found.name}” has no labels, so nothing says what a change does.", code="no_labels", given=name
        )
    if len(rows) > MOST:
        raise InvalidField(
            f"“{found.name}” has {len(rows):,} pictures.", code="too_many_items", given=len(rows), allowed=[1, MOST]
        )
    return found, [list(r) for r in rows]


def _write(folder: Path, files: Mapping[str, Any]) -> None:
    """Each appears whole, in the order given, and is on the disk when this returns."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        draft = folder / f".{name}.part"
        with draft.open("w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(folder / name)
    for place in (folder, folder.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(file: Path) -> dict[str, Any] | None:
    """None where it is not there, or not whole."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
