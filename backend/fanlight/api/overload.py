"""More requests than the server can take: it answers the ones it lets in about as fast as ever, and the others with 429 at once.

A limit on the requests in progress alone would hold the answers but refuse every burst, and a queue alone would absorb bursts but answer all of a
lasting overload late. So a short crowd waits; only where everybody has had to wait for longer than `TARGET` during a whole `INTERVAL` is it no
burst but too much, as in CoDel (Nichols and Jacobson 2012 [RECALLED]; its control law that drops ever faster is left out). From then on nobody
waits longer than `SHORT`, the newest is let in first, since the oldest has the least of its patience left, and that ends when nobody had to be
refused for `EASED`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

import orjson
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fanlight.api.gate import ENDLESS, without
from fanlight.errors import TooBusy

log = structlog.get_logger()

TARGET = 0.5  # seconds of waiting that are no sign: some dozens of clients that ask again once they are answered wait as long
INTERVAL = 2.0  # seconds of longer waits that are: a burst, or a stall of the disk, is over by then
PATIENCE = 5.0  # seconds that a request of a burst waits at most
SHORT = 0.015  # seconds that it waits at most while there is too much
EASED = 1.0  # seconds without a refusal after which there is not
CLIENT = 0.05  # seconds without a byte of the body after which a request waits for its client: others may have its seat meanwhile
AWAY = 1.0  # seconds after which it is taken to wait for something else, too: an upload, an export, a far store
BESIDE = 4  # times the limit: most requests that are taken to do so; where more are slow, it is the server that is
AGAIN = (1, 3)  # bounds of Retry-After in seconds; at random, lest those refused together come back together
FREE = ("/healthz", "/readyz", "/metrics", "/favicon.ico", *ENDLESS)
# Files, and the door: a crowd there has limits of its own.
UNCOUNTED = ("/assets/", "/_dash-component-suites/", "/_favicon", "/login")
REFUSED = ("/api/", "/s/")  # not pages, which are counted: one whose callback gets no answer stands still


class Seat:
    """A request in progress, counted until it leaves: at its end, or where it begins to wait for something else."""

    def __init__(self, seats: Seats):
        self._seats, self._taken, self._beside = seats, True, False
        self._timer = asyncio.get_running_loop().call_later(AWAY, self._slow)

    def leave(self) -> None:
        """On the event loop. Twice is once."""
        if self._taken:
            self._taken = False
            self._seats.free()

    def back(self) -> None:
        """What it waited for is there; in the middle of a request nobody waits for a seat."""
        if not self._taken and not self._beside:
            self._taken = True
            self._seats.taken += 1

    def close(self) -> None:
        """The request is over."""
        self._timer.cancel()
        self.leave()
        if self._beside:
            self._beside = False
            self._seats.beside -= 1

    def _slow(self) -> None:
        if self._taken and self._seats.beside < BESIDE * self._seats.limit:
            self._beside = True
            self._seats.beside += 1
            self.leave()


class Seats:
    """The requests in progress, and those that wait for one of them to end. Args: limit: of those in progress; clock: seconds, monotonic."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic):
        self.limit, self.taken, self.beside, self.pressed = limit, 0, 0, False
        self._clock = clock
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._calm = clock()  # when somebody last got in who had hardly waited
        self._refused = clock()  # when somebody was last refused

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def enter(self) -> Seat:
        """A seat, perhaps after a moment. Errors: too_busy."""
        came = self._clock()
        if self.taken < self.limit:
            self.taken += 1
        elif not await self._wait():
            self._refused = self._clock()
            seconds = random.randint(*AGAIN)
            raise TooBusy(
                "This server has more requests than it can answer.",
                retry_after=seconds,
                hint=f"Try again in {seconds} s.",
            )
        self._note(self._clock(), came)
        return Seat(self)

    def take(self) -> Seat:
        """A seat at once, beyond the limit where it must be."""
        self.taken += 1
        return Seat(self)

    def free(self) -> None:
        self.taken -= 1
        while self._waiting and self.taken < self.limit:
            # Where everybody waits too long anyway, who came last has the best chance not to have waited in vain.
            let_in = self._waiting.pop() if self.pressed else self._waiting.popleft()
            self.taken += 1
            let_in.set_result(True)

    async def _wait(self) -> bool:
        """Whether a seat came free in time."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(SHORT if self.pressed else PATIENCE, self._give_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.free()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise
        finally:
            timer.cancel()

    def _give_up(self, turn: asyncio.Future[bool]) -> None:
        if not turn.done():
            self._waiting.remove(turn)
            turn.set_result(False)

    def _note(self, now: float, came: float) -> None:
        """Somebody got in."""
        if now - came < TARGET:
            self._calm = now
        if self.pressed:
            if now - self._refused > EASED:
                self.pressed = False
                log.info("no more requests than this server can answer")
        elif now - self._calm > INTERVAL:
            self.pressed = True
            log.warning("more requests than this server can answer: some are refused", waiting=len(self._waiting))
            for turn in list(self._waiting):  # they have waited too long for those after them to be answered in time
                self._give_up(turn)


_here: ContextVar[Seat | None] = ContextVar("seat", default=None)


def idle() -> None:
    """The request that is being answered begins to wait for something that is not this process. Called on the event loop."""
    seat = _here.get()
    if seat is not None:
        seat.leave()


class Overload:
    """ASGI middleware outside the gate, so that a refusal costs no look at the database. Args: app; limit: of requests in progress; prefix: path
    prefix of every address."""

    def __init__(self, app: ASGIApp, limit: int, prefix: str = ""):
        self.app, self.seats, self._prefix = app, Seats(limit), prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = without(self._prefix, scope["path"]) if scope["type"] == "http" else ""
        # What a page asks the API inside its own request has the seat of the page: two would wait for each other.
        if not path or path in FREE or path.startswith(UNCOUNTED) or _here.get() is not None:
            await self.app(scope, receive, send)
            return
        try:
            seat = await self.seats.enter() if path.startswith(REFUSED) else self.seats.take()
        except TooBusy as e:
            await _refuse(e, scope, send)
            return
        mark = _here.set(seat)
        try:
            await self.app(scope, _unhurried(receive, seat), send)
        finally:
            _here.reset(mark)
            seat.close()


def _unhurried(receive: Receive, seat: Seat) -> Receive:
    """A client that is slow to send its body keeps no seat from others."""

    async def wrapped() -> Message:
        timer = asyncio.get_running_loop().call_later(CLIENT, seat.leave)
        try:
            return await receive()
        finally:
            timer.cancel()
            seat.back()

    return wrapped


async def _refuse(error: TooBusy, scope: Scope, send: Send) -> None:
    """The error as the API says it; to a browser that opens an address its sentence."""
    accepted = next((v for k, v in scope["headers"] if k == b"accept"), b"")
    shown = b"text/html" in accepted
    body = f"{error.message} {error.hint}\n".encode() if shown else orjson.dumps(error.body())
    head: Message = {
        "type": "http.response.start",
        "status": error.status,
        "headers": [
            (b"content-type", b"text/plain; charset=utf-8" if shown else b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"retry-after", str(error.retry_after).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ],
    }
    await send(head)
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
