"""What will be asked next: who uploads a picture wants to know what the model says of it. So its prediction is made at once, while they look
at it, where the worker has nothing else to do. Nothing is promised: if it comes to nothing, the explanation predicts as ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any

from sqlalchemy import Connection

from fanlight.adapters.base import takes
from fanlight.engine.base import BULK, Work
from fanlight.errors import FanlightError
from fanlight.service import inputs
from fanlight.service.context import Context, Visitor
from fanlight.service.keys import NUMERICS
from fanlight.service.outcome import remember

PAINT = 0.2  # seconds in which the browser puts the picture on the screen: on the same machine it needs the cores that a prediction takes


class Foresight:
    """Args: context. `start` belongs to the application's lifespan."""

    def __init__(self, context: Context):
        self.context = context
        self.models: dict[str, str] = {}
        """The model that each workspace asked last."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def uploaded(self, who: Visitor, ident: str) -> None:
        """From any thread: this person has uploaded this picture."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin, who, ident)

    def _begin(self, who: Visitor, ident: str) -> None:
        task = asyncio.create_task(self._predict(who, ident))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _predict(self, who: Visitor, ident: str) -> None:
        await asyncio.sleep(PAINT)
        context = self.context
        health = await context.engine.health()
        chosen = self.models.get(who.workspace) or next(
            (m.id for m in context.models.listed() if m.takes == "image"), None
        )
        if chosen is None or not health.ready or health.queued or health.running:
            return
        with contextlib.suppress(FanlightError):
            model = context.models.find(chosen)
            if takes(model["task"]) != "image":
                return
            source = await context.db.aread(lambda c: inputs.find(c, who.workspace, ident))
            work = Work(
                job=f"predict-{secrets.token_hex(8)}", attempt=0, kind="predict", priority=BULK,
                model={k: model[k] for k in ("id", "digest", "source", "size")}, input=source.blob,
                explainer="", version="", params={}, target=None, seed=0, numerics=NUMERICS,
            )  # fmt: skip
            handle = await context.engine.submit(work)
            async for event in handle.events():
                if event.kind == "predicted":
                    top: list[dict[str, Any]] = event.data["prediction"]
                    await context.db.awrite(lambda c, t=top: self._keep(c, who, model["digest"], ident, t))  # type: ignore[misc]

    def _keep(self, conn: Connection, who: Visitor, model: str, ident: str, top: list[dict[str, Any]]) -> None:
        remember(self.context, conn, who.workspace, model, ident, top)
