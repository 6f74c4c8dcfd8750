"""The field guide as a data set: the first scenes of its test split, drawn here, once per data folder. docs/data/field-guide.md is its card."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, insert, select

from fanlight import wire
from fanlight.service.context import SYSTEM, Context
from fanlight.service.datasets import Source, register as save
from fanlight.store.tables import counter, dataset

if TYPE_CHECKING:
    from fanlight_models.worlds.fieldguide import Scene

FIELD_GUIDE = "field-guide"
COUNT = 192
SIZE = 192  # more than the models of this world see, so that people see more
PAUSE = 0.01  # seconds after each picture in which requests go first


@dataclass(frozen=True)
class Drawn:
    """A scene in the place of a file: it is drawn when it is read."""

    name: str
    scene: Scene

    def read_bytes(self) -> bytes:
        from PIL import Image

        from fanlight_models.worlds.fieldguide import draw

        out = io.BytesIO()
        Image.fromarray(draw(self.scene, SIZE).image).save(out, "PNG", compress_level=0)
        return out.getvalue()


def source(count: int = COUNT) -> Source:
    """The sample at position i is scene i of the world's test split, so that its truth can be asked for."""
    from fanlight_models.worlds.fieldguide import split

    scenes = split("test", count)
    files = tuple((f"{s.name} {i:03}", s.name, Drawn(f"test-{i:03}.png", s)) for i, s in enumerate(scenes))
    return Source(
        FIELD_GUIDE,
        "Field guide",
        "Drawn birds of 24 invented species, made of parts: which part, which concept and how much of the background a model used is known here.",
        "Apache-2.0, drawn by Fanlight; docs/data/field-guide.md",
        files,
    )


async def offer(context: Context) -> None:
    """`register` beside the running server; ends early with it, and is then done at the next start."""
    ended = threading.Event()
    try:
        await asyncio.to_thread(register, context, ended=ended)
    finally:
        ended.set()


class _Ended(Exception):
    """The server ends."""


def register(context: Context, count: int = COUNT, *, ended: threading.Event | None = None) -> wire.Dataset | None:
    """Draws and registers the field guide, unless this data folder has this version of it. Some seconds of one core. None: nothing was done."""
    from fanlight_models.worlds.fieldguide import VERSION

    mine = (counter.c.workspace == SYSTEM.workspace) & (counter.c.name == FIELD_GUIDE)

    def current(conn: Connection) -> bool:
        kept = (dataset.c.workspace == SYSTEM.workspace) & (dataset.c.id == FIELD_GUIDE)
        there = conn.execute(select(dataset.c.id).where(kept)).first() is not None
        return there and conn.execute(select(counter.c.value).where(mine)).scalar() == VERSION

    if context.db.read(current):
        return None

    def rest(*_: int) -> None:
        time.sleep(PAUSE)
        if ended is not None and ended.is_set():
            raise _Ended

    try:
        saved = save(context, source(count), progress=rest)
    except _Ended:
        return None

    def note(conn: Connection) -> None:
        conn.execute(delete(counter).where(mine))
        conn.execute(insert(counter).values(workspace=SYSTEM.workspace, name=FIELD_GUIDE, value=VERSION))

    context.db.write(note)
    return saved
