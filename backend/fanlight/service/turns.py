"""How much a server takes from the ledger at a time: enough that its worker never waits for the next claim, so little that whoever comes waits
for a turn or two.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Row

from fanlight.store.claims import Room

# Most jobs that this server holds at a time per compute worker. A check may hold a copy of its network, so there is one.
HELD = {"explain": 64, "trust": 4, "check": 1}
TURN = 1.0  # seconds of work that a workspace of weight 1 has in its turn, where others wait
LEAST = 16.0  # forward passes in a turn: a batch on a CPU
AHEAD = 2.0  # turns of small jobs that are held at a time
LARGE = 2  # jobs larger than a turn that are held at a time per compute worker


def turn(throughput: float) -> float:
    """Forward passes in a turn. Args: throughput: forward passes per second."""
    return max(LEAST, TURN * throughput)


def room(held: Collection[Row[Any]], kind: str, priority: int, *, workers: int, turn: float) -> Room:
    """Of a class, beside what is held of it; none keeps the others out. Args: held: rows of `job`, of any class."""
    mine = [row for row in held if (row.kind, row.priority) == (kind, priority)]
    return Room(
        jobs=max(1, HELD[kind] * workers // 2) - len(mine),
        cost=AHEAD * turn - sum(row.cost for row in mine if row.cost <= turn),
        large=LARGE * workers - sum(row.cost > turn for row in mine),
        busy=frozenset(row.workspace for row in mine),
    )
