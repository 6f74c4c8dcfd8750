"""Reading and writing: one commit for several, none suffers for another, and what was answered is durable."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError

from fanlight.errors import Unavailable
from fanlight.store.database import Database, now
from fanlight.store.migrate import upgrade
from fanlight.store.tables import counter, event


def put(name: str) -> Any:
    return lambda conn: conn.execute(insert(counter).values(workspace="w", name=name, value=0))


def names(db: Database) -> list[str]:
    return db.read(lambda c: list(c.execute(select(counter.c.name).order_by(counter.c.name)).scalars()))


def add_one(conn: Connection) -> None:
    value = conn.execute(select(counter.c.value).where(counter.c.name == "n")).scalar_one()
    conn.execute(update(counter).where(counter.c.name == "n").values(value=value + 1))


class Gate:
    """A write that keeps the writer busy, so that what follows is committed together."""

    def __init__(self, db: Database):
        self.open, self.entered = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=db.write, args=(self.wait,))
        self.thread.start()
        assert self.entered.wait(10)

    def wait(self, conn: Connection) -> None:
        self.entered.set()
        assert self.open.wait(10)

    def release(self) -> None:
        self.open.set()
        self.thread.join()


def queued(db: Database, n: int) -> None:
    end = time.monotonic() + 10
    while db._writes.qsize() < n:
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_failing_write_does_not_undo_its_neighbours_in_the_same_commit(db: Database) -> None:
    gate = Gate(db)

    def half(conn: Connection) -> None:
        put("half")(conn)
        raise ValueError("no")

    acts = [put("a"), half, put("b"), lambda c: c.execute(text("select * from nothing")), put("a"), put("c")]
    with ThreadPoolExecutor(6) as pool:
        answers = []
        for n, act in enumerate(acts, 1):
            answers.append(pool.submit(db.write, act))
            queued(db, n)
        gate.release()
        errors = [a.exception() for a in answers]
    assert [type(e).__name__ for e in errors[:2]] == ["NoneType", "ValueError"]
    assert errors[2] is None and errors[5] is None
    assert isinstance(errors[3], Exception) and isinstance(errors[4], IntegrityError)
    assert names(db) == ["a", "b", "c"]


def test_a_read_then_write_never_loses_an_update(db: Database, url: str) -> None:
    db.write(put("n"))
    other = Database(url)  # a second server
    try:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda n: (db, other)[n % 2].write(add_one), range(200)))
    finally:
        other.close()
    assert db.read(lambda c: c.execute(select(counter.c.value)).scalar()) == 200


def test_a_read_sees_one_moment(db: Database) -> None:
    db.write(put("n"))

    def look(conn: Connection) -> tuple[int, int]:
        first = conn.execute(select(counter.c.value)).scalar_one()
        thread = threading.Thread(target=db.write, args=(add_one,))
        thread.start()
        thread.join()
        return first, conn.execute(select(counter.c.value)).scalar_one()

    assert db.read(look) == (0, 0)
    assert db.read(look) == (1, 1)


def test_events_become_visible_in_the_order_of_their_numbers(db: Database, url: str) -> None:
    """A stream that has seen number n never finds a smaller one later, which it would miss."""
    other, stop, missed = Database(url), threading.Event(), []

    def follow() -> None:
        seen: set[int] = set()
        while not stop.is_set():
            found = db.read(lambda c: list(c.execute(select(event.c.id)).scalars()))
            missed.extend(i for i in found if i not in seen and seen and i < max(seen))
            seen.update(found)

    follower = threading.Thread(target=follow)
    follower.start()

    def tell(n: int) -> None:
        (db, other)[n % 2].write(lambda c: c.execute(insert(event).values(workspace="w", data={}, created=now(c))))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tell, range(120)))
    stop.set()
    follower.join()
    other.close()
    assert missed == []


def test_a_write_whose_asker_was_cancelled_does_not_end_the_writer(db: Database) -> None:
    gate = Gate(db)

    async def give_up() -> None:
        task = asyncio.create_task(db.awrite(put("given up")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    gate.release()
    db.write(put("after"))
    assert names(db) == ["after"], "nobody waited for it, so it was not begun"


def test_a_write_that_is_running_when_its_asker_is_cancelled_is_finished(db: Database) -> None:
    began, go = threading.Event(), threading.Event()

    def slow(conn: Connection) -> None:
        began.set()
        assert go.wait(10)
        put("slow")(conn)

    async def give_up() -> None:
        task = asyncio.create_task(db.awrite(slow))
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    go.set()
    db.write(put("after"))
    assert names(db) == ["after", "slow"]


def test_not_even_a_system_exit_ends_the_writer(db: Database) -> None:
    def leave(conn: Connection) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        db.write(leave)
    db.write(put("after"))
    assert names(db) == ["after"]


def test_closing_finishes_what_was_asked_for_and_refuses_the_rest(db: Database, url: str) -> None:
    gate = Gate(db)
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(db.write, put(f"n{n}")) for n in range(4)]
        queued(db, 4)
        closing = threading.Thread(target=db.close)
        closing.start()
        gate.release()
        closing.join()
        assert all(a.exception() is None for a in answers)
    with pytest.raises(Unavailable, match="shutting down"):
        db.write(put("late"))
    again = Database(url)
    assert names(again) == ["n0", "n1", "n2", "n3"]
    again.close()


def test_sqlite_is_set_up_to_survive_a_power_cut(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'a' / 'new' / 'folder.sqlite'}")
    pragmas = {
        p: db.read(lambda c, p=p: c.execute(text(f"pragma {p}")).scalar())
        for p in ("synchronous", "journal_mode", "foreign_keys")
    }
    assert pragmas == {"synchronous": 2, "journal_mode": "wal", "foreign_keys": 1}
    assert db.write(lambda c: c.execute(text("pragma synchronous")).scalar()) == 2
    db.close()


def test_several_writes_share_a_commit(tmp_path: Path) -> None:
    from sqlalchemy import event as sa

    db = Database(f"sqlite:///{tmp_path / 'x.sqlite'}")
    db.write(lambda c: counter.create(c))
    commits: list[int] = []
    sa.listen(db.engine, "commit", lambda conn: commits.append(1))
    gate = Gate(db)
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(db.write, put(f"n{n}")) for n in range(20)]
        queued(db, 20)
        gate.release()
        for a in answers:
            a.result()
    assert len(commits) == 2, "one for the first, one for the twenty that waited"
    db.close()


def test_a_write_waits_for_another_process_that_holds_the_sqlite_file(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'x.sqlite'}")
    db.write(lambda c: counter.create(c))
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(1.0, lambda: other.execute("COMMIT")).start()
    began = time.monotonic()
    db.write(put("a"))
    assert time.monotonic() - began > 0.8
    assert names(db) == ["a"]
    db.close()
    other.close()


def test_a_database_that_is_away_is_a_sentence(url: str, db: Database) -> None:
    broken = Database("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2") if "postgres" in url else db
    if broken is db:
        Path(url.removeprefix("sqlite:///")).unlink()
        db.engine.dispose()
    with pytest.raises(Unavailable) as caught:
        broken.read(lambda c: c.execute(select(func.count()).select_from(counter)).scalar())
    assert caught.value.code == "database_unavailable" and isinstance(caught.value.__cause__, OperationalError)
    if broken is not db:
        with pytest.raises(Unavailable):
            broken.write(put("a"))
        broken.close()


@pytest.mark.postgres
def test_a_cut_connection_costs_one_answer_and_not_the_writer(postgres_url: str) -> None:
    upgrade(postgres_url)
    db = Database(postgres_url)

    def cut(conn: Connection) -> None:
        conn.execute(text("select pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(Unavailable):
        db.write(cut)
    db.write(put("after"))
    assert names(db) == ["after"]
    db.close()


@pytest.mark.postgres
def test_a_server_that_falls_asleep_during_its_turn_does_not_keep_the_others_from_writing(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(postgres_url)
    monkeypatch.setattr("fanlight.store.database.PATIENCE", "-c idle_in_transaction_session_timeout=1s")
    sleeper, other = Database(postgres_url), Database(postgres_url)

    def fall_asleep(conn: Connection) -> None:
        put("asleep")(conn)
        time.sleep(2.5)

    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(sleeper.write, fall_asleep)
        time.sleep(0.2)
        began = time.monotonic()
        other.write(put("other"))
        assert time.monotonic() - began < 2
        with pytest.raises(Unavailable):
            lost.result()
    sleeper.write(put("awake"))
    assert names(other) == ["awake", "other"]
    sleeper.close()
    other.close()
