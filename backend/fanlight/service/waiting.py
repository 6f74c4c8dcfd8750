"""How long a job will still take: what is left of it, and what will really run before it, against the measured speed.

What runs before a job that waits: all that is more urgent, whoever asked for it; of its own class what workers hold already; of what waits, as
fair turns bring it (store/claims): the older jobs of the same person, as much of each other person in the workspace, and as much of each other
workspace, by weight, but never more than they have waiting. Only seconds are told: how many jobs others have is theirs to know.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from fanlight.store import ledger, sight
from fanlight.store.claims import of_free
from fanlight.store.database import Database
from fanlight.store.people import workspace
from fanlight.store.tables import job

KEEP = 1.0  # seconds for which a look at the whole queue is good: a list of jobs asks once
_BACKLOG = of_free("""
    SELECT workspace, principal, sum(cost) AS cost FROM job {hint}
    WHERE {free} AND kind = :kind AND priority = :priority GROUP BY workspace, principal
""")
_OLDER = of_free("""
    SELECT coalesce(sum(cost), 0) FROM job {hint}
    WHERE {free} AND kind = :kind AND priority = :priority AND workspace = :workspace AND principal = :principal AND created < :created
""")
_LEFT = job.c.cost * (1 - job.c.progress)


@dataclass(frozen=True)
class Backlog:
    """Forward passes that are ahead, of one class.

    Args:
        before: of what is more urgent or held by a worker.
        waiting: per workspace and person.
        weights: of workspaces; of weight 1 where they are not named.
    """

    before: float
    waiting: Mapping[str, Mapping[str, float]]
    weights: Mapping[str, int]

    def ahead(self, space: str, person: str, older: float, cost: float) -> float:
        """Of a job of `cost` whose person has `older` waiting before it."""
        mine = older + cost
        others = (c for p, c in self.waiting.get(space, {}).items() if p != person)
        inside = older + sum(min(c, mine) for c in others)
        share = (inside + cost) / self.weights.get(space, 1)
        beside = (
            min(sum(people.values()), share * self.weights.get(w, 1))
            for w, people in self.waiting.items()
            if w != space
        )
        return self.before + inside + sum(beside)


def backlog(conn: Connection, kind: str, priority: int) -> Backlog:
    """As it is now. Held jobs of the class count as a whole: they may be anybody's."""
    open_ = job.c.state.in_(ledger.OPEN)
    urgent = select(func.coalesce(func.sum(_LEFT), 0)).where(open_, job.c.priority < priority)
    held = select(func.coalesce(func.sum(_LEFT), 0)).where(
        open_, job.c.kind == kind, job.c.priority == priority, job.c.owner.is_not(None)
    )
    waiting: dict[str, dict[str, float]] = defaultdict(dict)
    for r in conn.execute(_BACKLOG[conn.dialect.name], {"kind": kind, "priority": priority}):
        waiting[r.workspace][r.principal] = float(r.cost)
    weights = {r.id: r.weight for r in conn.execute(select(workspace.c.id, workspace.c.weight))}
    return Backlog(float(conn.execute(urgent).scalar_one()) + float(conn.execute(held).scalar_one()), waiting, weights)


class Waiting:
    """Estimates, from a look at the queue that is kept for a second. Args: db: asked for sums over all workspaces, whoever's request it is."""

    def __init__(self, db: Database):
        self.db = db
        self._seen: dict[tuple[str, int], tuple[float, Backlog]] = {}
        self._looking = threading.Lock()

    def ahead(self, conn: Connection, row: Row[Any]) -> float:
        """Forward passes before a job that has not begun. Args: row: of `job`."""
        known = self._backlog(row.kind, row.priority)
        if row.owner is not None:  # a worker has it: what is held was most of it taken before
            return float(max(0.0, known.before - row.cost * (1 - row.progress)))
        whose = row.workspace, row.principal
        mine = {name: getattr(row, name) for name in ("kind", "priority", "workspace", "principal", "created")}
        older = float(conn.execute(_OLDER[conn.dialect.name], mine).scalar_one())
        return known.ahead(*whose, older, row.cost)

    def _backlog(self, kind: str, priority: int) -> Backlog:
        at, found = self._seen.get((kind, priority), (float("-inf"), None))
        if found is not None and time.monotonic() - at < KEEP:
            return found
        with self._looking:  # one looks, the others take what it found
            at, found = self._seen.get((kind, priority), (float("-inf"), None))
            if found is None or time.monotonic() - at > KEEP:
                with sight.upkeep():
                    found = self.db.read(lambda c: backlog(c, kind, priority))
                self._seen[kind, priority] = time.monotonic(), found
        return found
