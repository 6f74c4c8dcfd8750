"""One stream of news per tab: server-sent events, resumed by Last-Event-ID."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from fanlight.api.access import Reader, Services
from fanlight.errors import TooBusy
from fanlight.service.bus import OF_ONE, STREAMS
from fanlight.service.context import Context, Visitor
from fanlight.service.entry import Entry
from fanlight.service.search import ordinal

router = APIRouter()
AGAIN = 2.0  # seconds after which somebody with a session or a key is asked for anew before they are told more


async def _seat(context: Services, who: Reader) -> AsyncIterator[None]:
    """A place among the streams, taken before the stream begins, after which there is no status to give, and kept to its end."""
    seats = context.bus.seats
    if seats.total() >= STREAMS:
        raise TooBusy("Too many pages are open on this server.", retry_after=30, allowed=STREAMS)
    if seats[who.principal] >= OF_ONE:
        raise TooBusy("You have too many streams open on this server.", retry_after=30, allowed=OF_ONE)
    seats[who.principal] += 1
    try:
        yield
    finally:
        seats[who.principal] -= 1
        if not seats[who.principal]:
            del seats[who.principal]


@router.get("/events", response_class=EventSourceResponse, dependencies=[Depends(_seat)])
async def events(
    context: Services, who: Reader, http: Request, last_event_id: Annotated[str | None, Header(max_length=40)] = None
) -> AsyncIterator[ServerSentEvent]:
    """Jobs and trust records of the workspace, as they change. Events with an id are replayed after a reconnect; progress is not."""
    last = ordinal(last_event_id) if last_event_id else None
    async for event in _told(context, who, last, http.app.state.entry):
        yield event


async def _told(
    context: Context, who: Visitor, last: int | None, entry: Entry, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[ServerSentEvent]:
    yield ServerSentEvent(comment="hello", retry=2000)
    asked = clock()
    async for ident, data in context.bus.stream(context.db, who.workspace, last):
        if who.ticket and (not data or clock() - asked > AGAIN):
            if not await entry.still(who):
                return
            asked = clock()
        if not data:
            yield ServerSentEvent(comment="still here")
        elif ident is None:
            yield ServerSentEvent(data=data)
        else:
            yield ServerSentEvent(data=data, id=str(ident))
