"""Events are kept for a bounded time; whoever comes back after longer is told to look anew."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from fanlight.service import retention
from fanlight.service.bus import REFRESH, Bus
from fanlight.service.listing import catch_up, listed_up_to
from fanlight.settings import Settings
from fanlight.store import ledger
from fanlight.store.database import Database
from fanlight.store.migrate import upgrade
from fanlight.store.tables import event


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Settings and a database, as `retention` needs them."""
    url = f"sqlite:///{tmp_path / 'x.sqlite'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    upgrade(url)
    db = Database(url)
    yield SimpleNamespace(db=db, settings=Settings(event_days=7), explainers=())
    db.close()


def tell(here: Any, count: int, *, days: float = 0, listed: bool = True) -> None:
    """So many events, so old. Args: listed: the gallery has seen them."""

    def act(conn: Connection) -> None:
        before = conn.execute(select(event.c.id)).scalars().all()
        for n in range(count):
            ledger.emit(conn, "w", {"n": n})
        fresh = event.c.id.not_in(before)
        conn.execute(update(event).where(fresh).values(created=event.c.created - int(days * retention.DAY)))

    here.db.write(act)
    if listed:
        here.db.write(lambda c: catch_up(here, c))


def kept(here: Any) -> list[int]:
    return here.db.read(lambda c: list(c.execute(select(event.c.id).order_by(event.c.id)).scalars()))


def resumed(here: Any, last: int | None, count: int) -> list[tuple[int | None, Any]]:
    async def act() -> list[Any]:
        found = []
        async for one in Bus().stream(here.db, "w", last):
            found.append(one)
            if len(found) == count:
                break
        return found

    return asyncio.run(asyncio.wait_for(act(), 10))


def test_only_what_is_old_goes(here: Any) -> None:
    tell(here, 5, days=8)
    tell(here, 3, days=6)
    assert retention.prune(here) == 5
    assert len(kept(here)) == 3
    assert retention.prune(here) == 0


def test_the_newest_stays_so_that_numbers_go_on(here: Any) -> None:
    tell(here, 5, days=8)
    last = kept(here)[-1]
    assert retention.prune(here) == 4 and kept(here) == [last]
    tell(here, 1)
    assert kept(here) == [last, last + 1]


def test_what_the_gallery_has_not_listed_stays(here: Any) -> None:
    tell(here, 4, days=8)
    tell(here, 4, days=8, listed=False)
    assert retention.prune(here) == 4
    assert kept(here)[0] == here.db.read(listed_up_to) + 1


def test_who_comes_back_in_time_misses_nothing(here: Any) -> None:
    tell(here, 5, days=8)
    tell(here, 3)
    retention.prune(here)
    first = kept(here)[0]
    assert [n for n, _ in resumed(here, first - 1, 3)] == [first, first + 1, first + 2], (
        "the last that was deleted was theirs"
    )
    assert [n for n, _ in resumed(here, first, 2)] == [first + 1, first + 2]


def test_who_comes_back_later_is_told_to_look_anew_and_goes_on_from_now(here: Any) -> None:
    tell(here, 5, days=8)
    tell(here, 3)
    retention.prune(here)
    newest = kept(here)[-1]
    assert resumed(here, kept(here)[0] - 2, 1) == [(newest, REFRESH)]


def test_a_backlog_goes_in_portions(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "EVENTS", 4)
    tell(here, 10, days=8)
    assert [retention.prune(here) for _ in range(4)] == [4, 4, 1, 0]
