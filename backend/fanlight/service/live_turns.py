"""Whose live edit is computed next.

Everybody who drags sends more changes than can be computed. So each session waits with its latest change alone, in the place in the line that its
first one took: what a newer change has overtaken is never computed, and nobody who drags fast is served more often than somebody who does not.
A suggestion costs several answers and nobody watches a bar for it, so answers that come a little later go before it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fanlight.errors import Conflict

Session = tuple[str, str, str]
"""Workspace, who asks, and the name that they gave."""

SESSIONS = 1000  # whose latest number is remembered
PATIENCE = 0.5  # seconds that a suggestion lets answers pass


@dataclass(eq=False)
class _Waiting:
    """due: seconds of the monotonic clock; of all that wait the smallest is next."""

    seq: int
    due: float
    turn: asyncio.Future[None]


class LiveTurns:
    """Args: places: how many live edits are under way at once, a session at most one of them."""

    def __init__(self, places: int):
        self._places = places
        self._latest: OrderedDict[Session, int] = OrderedDict()
        self._waiting: dict[Session, _Waiting] = {}
        self._busy: set[Session] = set()

    @asynccontextmanager
    async def turn(self, session: Session, seq: int, patient: bool = False) -> AsyncIterator[None]:
        """Waits for its turn and holds it. Args: patient: others may go first for a moment.

        Errors: superseded where a newer change of the session is here, or arrives before this one's turn."""
        await self._wait(session, seq, time.monotonic() + (PATIENCE if patient else 0.0))
        try:
            yield
        finally:
            self._busy.discard(session)
            if session in self._waiting:  # what it asked for meanwhile goes behind those who were not served
                self._waiting[session].due = max(self._waiting[session].due, time.monotonic())
            self._next()

    async def _wait(self, session: Session, seq: int, due: float) -> None:
        if seq < self._latest.get(session, -1):
            raise superseded(seq)
        self._remember(session, seq)
        old = self._waiting.pop(session, None)
        if old is not None:
            due = min(due, old.due)
            if not old.turn.done():
                old.turn.set_exception(superseded(old.seq))
        mine = self._waiting[session] = _Waiting(seq, due, asyncio.get_running_loop().create_future())
        self._next()
        try:
            await mine.turn
        except asyncio.CancelledError:  # whoever asked has gone
            if self._waiting.get(session) is mine:
                del self._waiting[session]
            elif mine.turn.done() and not mine.turn.cancelled() and mine.turn.exception() is None:
                self._busy.discard(session)
                self._next()
            raise

    def _remember(self, session: Session, seq: int) -> None:
        self._latest[session] = seq
        self._latest.move_to_end(session)
        while len(self._latest) > SESSIONS:
            self._latest.popitem(last=False)

    def _next(self) -> None:
        """Gives free places to those that are due first."""
        while len(self._busy) < self._places:
            ready = [s for s in self._waiting if s not in self._busy]
            if not ready:
                return
            session = min(ready, key=lambda s: self._waiting[s].due)
            self._busy.add(session)
            self._waiting.pop(session).turn.set_result(None)


def superseded(seq: int) -> Conflict:
    return Conflict("A newer change of this session has arrived.", code="superseded", given=seq)
