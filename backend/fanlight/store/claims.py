"""Claims: which jobs a worker takes next. Fair between workspaces, and between the people in one, within each class (kind and priority).

What fairness has to remember, the lanes of `rounds`, is in the database and is written in the transaction of the claim; so it does not matter which
server claims, and none need know what others took. docs/decisions/0014.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Float,
    Row,
    TextClause,
    bindparam,
    case,
    delete,
    insert,
    literal,
    select,
    text,
    update,
)

from fanlight.store.database import now
from fanlight.store.people import workspace
from fanlight.store.rounds import Lane, Round
from fanlight.store.tables import FREE, explanation, job, lane

LEASE = 30_000_000
QUANTUM = 50.0  # forward passes in a turn, where nothing is measured
PORTION = 64  # jobs of a person that are read at a time
WORKSPACE = ""  # in place of a principal: the lane of the workspace as a whole


class Room(NamedTuple):
    """How much more of a class a worker takes.

    Args:
        jobs: at most so many; of `claim` a kind as a whole has a bound of its own.
        cost: forward passes of those that cost at most a quantum; the last may go beyond.
        large: at most so many that cost more.
        busy: workspaces of which the worker holds something. One job of any other that has not had its turn is taken although there is no
            room, so that the first job of whoever comes is where small work goes ahead of large (engine/core), whatever others have there.
            None: this is not done.
    """

    jobs: int
    cost: float = float("inf")
    large: int = 1 << 30
    busy: frozenset[str] | None = None


class Flow(NamedTuple):
    """Somebody's waiting jobs of one class."""

    kind: str
    priority: int
    workspace: str
    principal: str


def of_free(statement: str) -> dict[str, TextClause]:
    """By dialect. SQLite is told which index to use: it would rather read all that is queued.

    Args: statement: with {hint} after the table, and {free} as the condition.
    """
    hints = {"sqlite": "INDEXED BY ix_job_free", "postgresql": ""}
    return {dialect: text(statement.format(free=FREE, hint=hint)) for dialect, hint in hints.items()}


# From one person's first job to the next person's, so that it costs a few looks into the index for each person, however much each has waiting:
# the next of the same workspace, else of the next workspace, priority, kind. (SQLite would compare whole rows one by one.)
_AFTER = """(
    SELECT id FROM job {hint} WHERE {free} AND %s ORDER BY kind, priority, workspace, principal, created LIMIT 1
)"""
_BEYOND = (
    "kind = f.kind AND priority = f.priority AND workspace = f.workspace AND principal > f.principal",
    "kind = f.kind AND priority = f.priority AND workspace > f.workspace",
    "kind = f.kind AND priority > f.priority",
    "kind > f.kind",
)
_FLOWS = f"""
    WITH RECURSIVE flow (kind, priority, workspace, principal) AS (
        SELECT kind, priority, workspace, principal FROM (
            SELECT kind, priority, workspace, principal FROM job {{hint}} WHERE {{free}}
            ORDER BY kind, priority, workspace, principal, created LIMIT 1
        ) AS begin
        UNION ALL
        SELECT j.kind, j.priority, j.workspace, j.principal FROM flow AS f JOIN job AS j
        ON j.id = coalesce({", ".join(_AFTER % beyond for beyond in _BEYOND)})
    )
    SELECT kind, priority, workspace, principal FROM flow
"""  # noqa: S608
FLOWS = of_free(_FLOWS)
_NEXT = of_free("""
    SELECT id, cost FROM job {hint}
    WHERE {free} AND kind = :kind AND priority = :priority AND workspace = :workspace AND principal = :principal
    ORDER BY created LIMIT :most OFFSET :after
""")
_ANY = of_free("SELECT id FROM job {hint} WHERE {free} AND kind = :kind LIMIT 1")
_UNUSED = bindparam("unused", type_=Float)
_REFUND = (
    update(lane)
    .where(
        lane.c.kind == bindparam("k"),
        lane.c.priority == bindparam("p"),
        lane.c.space == bindparam("w"),
        lane.c.principal.in_(bindparam("who", expanding=True)),
    )
    .values(
        deficit=case((lane.c.deficit + _UNUSED > lane.c.allowance, lane.c.allowance), else_=lane.c.deficit + _UNUSED)
    )
)
_WEIGHTS = select(workspace.c.id, workspace.c.weight).where(workspace.c.weight != 1)
_NOBODY = Round({}, (), lambda _: 1.0)


def any_free(conn: Connection, kinds: Iterable[str]) -> bool:
    """Whether there is a job that nobody works on and somebody waits for."""
    return any(conn.execute(_ANY[conn.dialect.name], {"kind": kind}).first() for kind in kinds)


def flows(conn: Connection) -> list[Flow]:
    """Who waits for something that nobody works on, by class."""
    return [Flow(*row) for row in conn.execute(FLOWS[conn.dialect.name])]


def claim(
    conn: Connection,
    owner: str,
    most: Mapping[str, int],
    *,
    room: Callable[[str, int], Room] | None = None,
    quantum: float = QUANTUM,
) -> list[Row[Any]]:
    """Takes free jobs for `owner`, most urgent first and in fair turns; each begins a new attempt under a fresh lease.

    A row has besides its columns `claimed`, the time by the database's clock, and `recomputes` of its explanation.

    Args:
        most: how many jobs of each kind; other kinds are left alone.
        room: of a kind and a priority; left out: whatever `most` allows.
        quantum: forward passes in a turn of a workspace of weight 1.
    """
    classes: dict[tuple[str, int], list[Flow]] = defaultdict(list)
    for flow in flows(conn):
        if most.get(flow.kind):
            classes[flow.kind, flow.priority].append(flow)
    if not classes:
        return []
    weights = {r.id: r.weight for r in conn.execute(_WEIGHTS)}
    names: list[str] = []
    left = dict(most)
    for (kind, priority), waiting in classes.items():  # by kind and then by priority, as the flows come
        here = Room(left[kind]) if room is None else room(kind, priority)
        jobs = min(here.jobs, left[kind])
        if left[kind] > 0:
            taken = _Class(conn, waiting, quantum, weights).take(here._replace(jobs=jobs), left[kind])
            left[kind] -= len(taken)
            names += taken
    return _take(conn, owner, names)


def refund(conn: Connection, rows: Iterable[Row[Any]]) -> None:
    """Gives back what was taken for jobs and not used: they were cancelled, or go back to the queue. Args: rows: of `job`, while they are held."""
    for row in rows:
        unused = row.cost * (1 - row.progress)
        if unused > 0:
            whose = {"k": row.kind, "p": row.priority, "w": row.workspace, "who": [WORKSPACE, row.principal]}
            conn.execute(_REFUND, {**whose, "unused": unused})


class _Class:
    """Turns in one class. Args: waiting: its flows, at least one."""

    def __init__(self, conn: Connection, waiting: list[Flow], quantum: float, weights: Mapping[str, int]):
        self.conn, self.quantum = conn, quantum
        self.kind, self.priority = waiting[0].kind, waiting[0].priority
        self.flows = {(f.workspace, f.principal): f for f in waiting}
        self.queues: dict[tuple[str, str], deque[tuple[str, int]]] = {}
        self.read: Counter[tuple[str, str]] = Counter()
        kept: dict[str, dict[str, Lane]] = defaultdict(dict)
        spaces: dict[str, Lane] = {}
        for r in conn.execute(select(lane).where(*self._mine())):
            found = Lane(r.deficit, r.allowance, r.turn)
            if r.principal == WORKSPACE:
                spaces[r.space] = found
            else:
                kept[r.space][r.principal] = found
        self.before = {(w, WORKSPACE): replace(one) for w, one in spaces.items()}
        self.before |= {(w, p): replace(one) for w, some in kept.items() for p, one in some.items()}
        people: dict[str, set[str]] = defaultdict(set)
        for flow in waiting:
            people[flow.workspace].add(flow.principal)
        self.spaces = Round(spaces, people, lambda name: quantum * weights.get(name, 1))
        self.people = {w: Round(kept[w], people[w], lambda _: quantum) for w in {*kept, *people}}

    def take(self, room: Room, most: int) -> list[str]:
        """Ids of jobs in the order of their turns, locked. Args: most: of them, also where the room is exceeded."""
        chosen: dict[str, tuple[str, str, int]] = {}
        cost, large = room.cost, room.large

        def fits(price: int) -> bool:
            return large > 0 if price > self.quantum else cost > 0

        while self.spaces.waiting and len(chosen) < room.jobs:
            space = self.spaces.first()
            found = self._next(space, fits)
            if found is None:
                break
            large, cost = (large - 1, cost) if found[2] > self.quantum else (large, cost - found[2])
            chosen[found[0]] = (space, *found[1:])
        if room.busy is not None:
            served = room.busy | {space for space, *_ in chosen.values()}
            for space in [s for s in self.spaces.solvent() if s not in served][: most - len(chosen)]:
                found = self._next(space, lambda _: True)
                if found is not None:
                    chosen[found[0]] = (space, *found[1:])
        named = select(job.c.id).where(job.c.id.in_(list(chosen))).with_for_update(skip_locked=True)
        locked = set(self.conn.execute(named).scalars())
        for name in chosen.keys() - locked:  # somebody holds its row at this moment: it is for another time
            space, person, price = chosen[name]
            self._charge(space, person, -price)
        self._save()
        return [name for name in chosen if name in locked]

    def _next(self, space: str, fits: Callable[[int], bool]) -> tuple[str, str, int] | None:
        """Takes the next job of a workspace: id, person, cost. One that does not fit is overtaken by those of the same workspace that do."""
        people = self.people[space]
        for person in dict.fromkeys((people.first(), *people.solvent())):
            queue = self._queue(space, person)
            found = next((one for one in queue if fits(one[1])), None)
            if found is None:
                continue
            queue.remove(found)
            self._charge(space, person, found[1])
            if not self._queue(space, person):
                people.leave(person)
                if not people.waiting:
                    self.spaces.leave(space)
            return found[0], person, found[1]
        return None

    def _charge(self, space: str, person: str, price: float) -> None:
        if space in self.spaces.lanes:
            self.spaces.charge(space, price)
        if person in self.people[space].lanes:
            self.people[space].charge(person, price)

    def _queue(self, space: str, person: str) -> deque[tuple[str, int]]:
        """What somebody has waiting, oldest first; empty where nothing is left."""
        whose = space, person
        queue = self.queues.setdefault(whose, deque())
        if not queue and self.read[whose] % PORTION == 0:
            wanted = {**self.flows[whose]._asdict(), "after": self.read[whose], "most": PORTION}
            queue.extend((r.id, r.cost) for r in self.conn.execute(_NEXT[self.conn.dialect.name], wanted))
            self.read[whose] += len(queue) or 1  # not to ask again
        return queue

    def _save(self) -> None:
        """Writes down the lanes that changed; those of people go with their workspace's, once it waits for nothing and owes nothing."""
        after = {(w, WORKSPACE): one for w, one in self.spaces.lanes.items()}
        after |= {(w, p): one for w in self.spaces.lanes for p, one in self.people.get(w, _NOBODY).lanes.items()}
        changed = [key for key, one in after.items() if self.before.get(key) != one]
        for space, person in {*changed, *(self.before.keys() - after.keys())} & self.before.keys():
            self.conn.execute(delete(lane).where(*self._mine(), lane.c.space == space, lane.c.principal == person))
        if changed:
            here = {"kind": self.kind, "priority": self.priority}
            self.conn.execute(
                insert(lane), [{**here, "space": w, "principal": p, **asdict(after[w, p])} for w, p in changed]
            )

    def _mine(self) -> tuple[Any, ...]:
        return lane.c.kind == self.kind, lane.c.priority == self.priority


def _take(conn: Connection, owner: str, names: list[str]) -> list[Row[Any]]:
    if not names:
        return []
    t = now(conn)
    conn.execute(
        update(job).where(job.c.id.in_(names)).values(owner=owner, attempt=job.c.attempt + 1, lease_until=t + LEASE)
    )
    taken = select(job, literal(t).label("claimed"), explanation.c.recomputes)
    taken = taken.outerjoin(explanation, explanation.c.id == job.c.explanation).where(job.c.id.in_(names))
    found = {row.id: row for row in conn.execute(taken)}
    return sorted((found[name] for name in names), key=lambda row: row.priority)  # what is equal stays in turn
