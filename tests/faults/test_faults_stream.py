"""The stream of events over a database: nothing that was written down is missed, however much there is or however slow the reader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from fanlight.service import bus
from fanlight.service.bus import BACKLOG, Bus
from fanlight.store import ledger
from fanlight.store.database import Database
from fanlight.store.migrate import upgrade


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'x.sqlite'}"
    upgrade(url)
    made = Database(url)
    yield made
    made.close()


def tell(db: Database, count: int) -> None:
    def act(conn: Connection) -> None:
        for n in range(count):
            ledger.emit(conn, "w", {"n": n})

    db.write(act)


async def read(stream: object, count: int) -> list[int]:
    """Ids of the next `count` persisted events."""
    found: list[int] = []
    async for ident, _ in stream:  # type: ignore[attr-defined]
        if ident is not None:
            found.append(ident)
            if len(found) == count:
                return found
    raise AssertionError("the stream ended")


def test_a_resumed_stream_gets_all_it_missed_without_waiting_for_news(db: Database) -> None:
    many = 2 * BACKLOG + 7
    tell(db, many)
    found = asyncio.run(asyncio.wait_for(read(Bus().stream(db, "w", 0), many), 10))
    assert found == list(range(1, many + 1))


def test_a_reader_that_fell_behind_catches_up(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """More progress than its queue holds came in, and with it the tick was dropped; nothing ticks again."""
    monkeypatch.setattr(bus, "HEARTBEAT", 0.1)

    async def act() -> list[int]:
        news = Bus()
        news.start()
        stream = news.stream(db, "w", 0)
        tell(db, 1)
        first = await read(stream, 1)
        for _ in range(BACKLOG + 5):
            news.publish("w", {"progress": 1})
        await asyncio.sleep(0)
        tell(db, 1)
        news.tick()
        return first + await read(stream, 1)

    assert asyncio.run(asyncio.wait_for(act(), 10)) == [1, 2]


def test_what_another_server_writes_is_seen(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "HEARTBEAT", 0.1)
    other = Database(db.url)

    async def act() -> list[int]:
        news = Bus()
        news.start()
        reading = asyncio.create_task(read(news.stream(db, "w", 0), 1))
        await asyncio.sleep(0.3)
        tell(other, 1)  # and ticks in its own process only
        return await reading

    assert asyncio.run(asyncio.wait_for(act(), 10)) == [1]
    other.close()
