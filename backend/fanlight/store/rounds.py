"""Whose turn it is: deficit round robin, at one level, over whoever has something waiting. Pure; `claims` keeps the lanes in the database.

Each lane is served until its deficit is used up, then goes to the end of the round with a fresh allowance (quantum times weight). The last job of a
turn may cost more than is left: the lane goes into debt and is passed over until rounds have paid for it. That is surplus round robin, the
variant of Shreedhar and Varghese's deficit round robin (1995) that need not know the cost of a job before its turn [recalled]: somebody's first
job waits for one turn of each other, however large it is, and a large one is paid for afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass
class Lane:
    """Args: deficit: cost that may still be taken in this turn, negative for debt; allowance: what a turn adds; turn: place in the round."""

    deficit: float
    allowance: float
    turn: int


class Round:
    """Lanes by name, in the order of their turns.

    Args:
        lanes: as they were kept. One with nothing waiting stays until its turn comes, so that who comes back sooner has no second turn in a round,
            and while it is in debt.
        waiting: names with something waiting.
        allowance: of a name, in cost units, above 0.
    """

    def __init__(self, lanes: dict[str, Lane], waiting: Collection[str], allowance: Callable[[str], float]):
        self.waiting = set(waiting)
        self.lanes = dict(lanes)
        self.tail = max((lane.turn for lane in lanes.values()), default=0)
        for name, lane in self.lanes.items():
            lane.allowance = allowance(name)
        for name in sorted(self.waiting - self.lanes.keys()):
            self.lanes[name] = Lane(allowance(name), allowance(name), self._end())
        self.order = deque(sorted(self.lanes, key=lambda n: self.lanes[n].turn))

    def first(self) -> str:
        """Whose turn it is. Something must be waiting."""
        passed = 0
        while True:
            if passed >= len(self.order):
                self._forward()
                passed = 0
            name = self.order[0]
            lane = self.lanes[name]
            if name in self.waiting and lane.deficit > 0:
                return name
            self._grant(name, 1)
            if name in self.waiting or lane.deficit < 0:
                lane.turn = self._end()
                self.order.rotate(-1)
                passed += 1
            else:
                self.order.popleft()
                del self.lanes[name]

    def charge(self, name: str, cost: float) -> None:
        """Negative where something was not done after all."""
        lane = self.lanes[name]
        lane.deficit = min(lane.deficit - cost, lane.allowance)

    def solvent(self) -> list[str]:
        """Who waits and may still take something in this round, in order."""
        return [n for n in self.order if n in self.waiting and self.lanes[n].deficit > 0]

    def leave(self, name: str) -> None:
        """Nothing of it waits any more: its turn is over."""
        self.waiting.discard(name)
        self.lanes[name].turn = self._end()
        self.order.remove(name)
        self.order.append(name)

    def _forward(self) -> None:
        """As many rounds at once as pass until somebody has something to spend."""
        owing = (self.lanes[n] for n in self.waiting)
        rounds = min(int(-lane.deficit // lane.allowance) + 1 for lane in owing)
        for name in self.order:
            self._grant(name, rounds)

    def _grant(self, name: str, rounds: int) -> None:
        """Args: rounds: so many turns went by. Who waits for nothing saves nothing."""
        lane = self.lanes[name]
        lane.deficit += rounds * lane.allowance
        if name not in self.waiting:
            lane.deficit = min(lane.deficit, 0.0)

    def _end(self) -> int:
        self.tail += 1
        return self.tail
