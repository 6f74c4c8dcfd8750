"""What a sweep found, from stored facts and artifacts: counts, faithfulness, groups of maps. Made aside, kept by content, renewed as it goes on.

One thread makes summaries, away from the event loop and the writer. Of each map 28 x 28 means are kept, of pictures only running sums, so
what a summary holds is bounded whatever the size of the sweep.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import structlog
from sqlalchemy import Connection, Row, case, func, select

from fanlight import comparison, wire
from fanlight.artifact import Artifact, canonical, digest
from fanlight.errors import FanlightError, NotFound
from fanlight.service import sweeps, sweeps_figures
from fanlight.service.context import Context, Visitor
from fanlight.service.recent import Recent
from fanlight.service.sweeps_groups import FINE, Groups, grouped
from fanlight.store.tables import explanation, sweep_item

log = structlog.get_logger()
Array = np.ndarray[Any, np.dtype[Any]]

BRIEF = 8
"""Explanations in a list of a summary."""
PAUSE = 4.0
"""Seconds between two summaries of a sweep that goes on."""
KEPT = 8
"""Sweeps whose summaries are kept."""
_maps = Recent(32 << 20)


@dataclass
class Made:
    """A summary with what its pictures are drawn from. `groups` is None while they are being made."""

    summary: wire.SweepSummary
    groups: Groups | None = None
    at: float = field(default_factory=time.monotonic)

    @property
    def cluster(self) -> dict[str, int]:
        """Explanation -> number of its group, from 1."""
        return {} if self.groups is None else dict(zip(self.groups.ids, self.groups.number, strict=True))


class Summaries:
    """Args: context."""

    def __init__(self, context: Context):
        self.context = context
        self._made: OrderedDict[str, Made] = OrderedDict()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="fanlight-sweep")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def answer(self, visitor: Visitor, ident: str, wait: float) -> wire.SweepSummary:
        """The newest summary, at most `wait` seconds later; one without groups where there is none yet."""
        content, over = await self.context.db.aread(lambda c: _content(c, visitor, ident))
        known = self._made.get(ident)
        if known is not None and known.summary.content == content:
            self._made.move_to_end(ident)
            return known.summary
        task = self._running.get(ident)
        if task is None and (known is None or over or time.monotonic() - known.at > PAUSE):
            task = self._running[ident] = asyncio.create_task(self._make(visitor, ident, content))
        if task is not None and wait > 0:
            await asyncio.wait([task], timeout=wait)
            known = self._made.get(ident)
        if known is None or (not known.summary.n and known.summary.content != content):
            return (await asyncio.to_thread(self._plain, visitor, ident, content)).model_copy(update={"current": False})
        return known.summary.model_copy(update={"current": known.summary.content == content})

    async def _make(self, visitor: Visitor, ident: str, content: str) -> None:
        try:
            loop = asyncio.get_running_loop()
            here = contextvars.copy_context()  # an executor knows nothing of who asked
            self._made[ident] = await loop.run_in_executor(self._thread, here.run, self._whole, visitor, ident, content)
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
        except FanlightError as e:
            log.warning("summary not made", sweep=ident, problem=e.message)
        except Exception:
            log.exception("summary could not be made", sweep=ident)
        finally:
            self._running.pop(ident, None)

    def known(self, ident: str) -> Made | None:
        return self._made.get(ident)

    def picture(self, visitor: Visitor, ident: str, number: int, name: str) -> bytes:
        """The mean picture or the mean map of a group, PNG. Errors: unknown_sweep, NotFound where it is not made or no longer kept."""
        self.context.db.read(lambda c: sweeps.find(c, visitor, ident))
        made = self._made.get(ident)
        if made is None or made.groups is None or not 1 <= number <= len(made.groups.pictures):
            raise NotFound(
                "There is no such group.", code="unknown_cluster", given=number, hint="Ask for the summary first."
            )
        return (made.groups.pictures if name == "picture" else made.groups.maps)[number - 1]

    def _plain(self, visitor: Visitor, ident: str, content: str) -> wire.SweepSummary:
        def act(conn: Connection) -> tuple[Row[Any], list[Row[Any]]]:
            return sweeps.find(conn, visitor, ident), list(conn.execute(_finished(ident)))

        row, found = self.context.db.read(act)
        return summary(row, found, content)

    def _whole(self, visitor: Visitor, ident: str, content: str) -> Made:
        def act(conn: Connection) -> tuple[Row[Any], list[Row[Any]]]:
            return sweeps.find(conn, visitor, ident), list(conn.execute(_finished(ident)))

        row, found = self.context.db.read(act)
        plain = summary(row, found, content)
        groups = grouped(
            self.context,
            found,
            self._fine(found),
            workspace=row.workspace,
            base=f"{self.context.settings.root_path}/api/v1/sweeps/{ident}/clusters",
            content=content[:16],
        )
        return Made(plain.model_copy(update={"clusters": groups.clusters, "projection": groups.projection}), groups)

    def _fine(self, rows: Sequence[Row[Any]]) -> tuple[Array, list[Artifact | None]]:
        """(n, FINE, FINE) float32 of the rows' maps, and the meta of each; zeros and None for what cannot be read."""
        fine = np.zeros((len(rows), FINE, FINE), np.float32)
        heads: list[Artifact | None] = []
        for i, row in enumerate(rows):
            named = next((a for a in row.artifacts if a["kind"] in comparison.MAPS), None)
            head = None
            if named is not None:
                try:
                    fine[i] = self._one(named["digest"])
                    head = Artifact("map", "image-map", {}, named["meta"])
                except (FanlightError, ValueError) as e:
                    log.warning("map not read", explanation=row.explanation, problem=str(e))
            heads.append(head)
        return fine, heads

    def _one(self, name: str) -> Array:
        blob = _maps.get(name)
        if blob is None:
            values = comparison.plane(Artifact.from_bytes(self.context.blobs.get(name)))
            small = comparison.resampled(values, comparison.WHOLE, (FINE, FINE)).astype(np.float32)
            _maps.put(name, small.tobytes())
            return small
        return np.frombuffer(blob, np.float32).reshape(FINE, FINE)


def _finished(ident: str) -> Any:
    return sweeps.results().where(
        sweep_item.c.sweep == ident, sweep_item.c.state.in_(("measuring", "succeeded")), explanation.c.id.is_not(None)
    )


def _content(conn: Connection, visitor: Visitor, ident: str) -> tuple[str, bool]:
    """What names the present state of a sweep, and whether it is over."""
    row = sweeps.find(conn, visitor, ident)
    e = explanation.c
    done = sweep_item.c.state.in_(("measuring", "succeeded"))
    seen = conn.execute(
        select(
            func.count(),
            func.count(e.id),
            func.count(e.faithfulness),
            func.sum(e.faithfulness),
            func.max(e.finished),
            func.sum(case((done, 1), else_=0)),
        )
        .select_from(sweep_item)
        .outerjoin(explanation, e.id == sweep_item.c.explanation)
        .where(sweep_item.c.sweep == ident)
    ).one()
    over = row.state not in sweeps.ACTIVE
    return digest(canonical([ident, over, *[str(v) for v in seen]])), over


def summary(row: Row[Any], found: Sequence[Row[Any]], content: str) -> wire.SweepSummary:
    """What rows say without their maps."""
    outcomes = [(r, sweeps.outcome(r.label, r.top_class)) for r in found]
    labelled = [(r, o) for r, o in outcomes if o is not None]
    right = sum(o == "right" for _, o in labelled)
    scored = sorted((r for r in found if r.faithfulness is not None), key=lambda r: (-r.faithfulness, r.position))
    wrong = sorted(
        (r for r, o in labelled if o == "wrong" and r.top_probability is not None),
        key=lambda r: (-r.top_probability, r.position),
    )
    return wire.SweepSummary(
        sweep=row.id,
        content=content,
        n=len(found),
        total=row.total,
        complete=row.state == "done",
        current=True,
        labelled=len(labelled),
        accuracy=sweeps_figures.portion(right, len(labelled)),
        faithful=sweeps_figures.faithful(
            [r.faithfulness for r in scored], sum(r.trust_class == "above" for r in scored)
        ),
        most=[r.explanation for r in scored[:BRIEF]],
        least=[r.explanation for r in scored[::-1][:BRIEF]],
        confident=[r.explanation for r in wrong[:BRIEF]],
    )
