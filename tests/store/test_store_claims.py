"""Fair claims on SQLite and on PostgreSQL: between workspaces, between people, whichever server claims."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import insert, select

from fanlight.store import claims
from fanlight.store.claims import Room
from fanlight.store.database import Database
from fanlight.store.people import workspace
from fanlight.store.tables import lane


def take(db: Database, count: int = 1, *, owner: str = "a", quantum: float = 100, **options: Any) -> list[Any]:
    return db.write(lambda c: claims.claim(c, owner, {"explain": count}, quantum=quantum, **options))


def spent(rows: list[Any], of: str = "workspace") -> Counter[str]:
    """Forward passes that were claimed."""
    found: Counter[str] = Counter()
    for row in rows:
        found[getattr(row, of)] += row.cost
    return found


def test_two_workspaces_share_whatever_each_has_waiting(jobs: Any) -> None:
    for _ in range(60):
        jobs.add(workspace="many", cost=10)
    for _ in range(6):
        jobs.add(workspace="few", cost=100)
    rows = [row for _ in range(22) for row in take(jobs.db, 2)]
    assert spent(rows) == {"many": 400, "few": 400}


def test_many_small_claims_are_as_fair_as_one_large_one(jobs: Any) -> None:
    for n in range(40):
        jobs.add(workspace=f"w{n % 2}", cost=10)
    order = [row.workspace for _ in range(40) for row in take(jobs.db, 1, quantum=50)]
    assert order == (["w0"] * 5 + ["w1"] * 5) * 4


def test_a_newcomer_waits_for_one_turn(jobs: Any) -> None:
    for _ in range(300):
        jobs.add(workspace="many", cost=1)
    for _ in range(5):
        jobs.add(workspace="large", cost=5000)
    take(jobs.db, 30)
    jobs.add(workspace="new", cost=7)
    order = [r.workspace for r in take(jobs.db, 200)]
    assert order.index("new") == 71, "the rest of a turn of a hundred, and one large job"


def test_people_of_one_workspace_share_its_turns(jobs: Any) -> None:
    for _ in range(30):
        jobs.add(workspace="w", principal="busy", cost=10)
    for _ in range(4):
        jobs.add(workspace="w", principal="other", cost=25)
    for _ in range(30):
        jobs.add(workspace="x", principal="alone", cost=10)
    rows = take(jobs.db, 34, quantum=50)
    assert spent(rows) == {"w": 200, "x": 200}
    assert spent(rows, "principal") == {"busy": 100, "other": 100, "alone": 200}


def test_a_weight_is_a_share(jobs: Any) -> None:
    heavy = {"id": "heavy", "name": "H", "created": 0, "weight": 3}
    jobs.db.write(lambda c: c.execute(insert(workspace).values(**heavy)))
    for _ in range(40):
        jobs.add(workspace="heavy", cost=10)
        jobs.add(workspace="light", cost=10)
    assert spent(take(jobs.db, 40, quantum=50)) == {"heavy": 300, "light": 100}


def test_what_is_cancelled_gives_back_what_it_did_not_use(jobs: Any) -> None:
    jobs.add(workspace="a", cost=500)
    for _ in range(20):
        jobs.add(workspace="a", cost=10)
        jobs.add(workspace="b", cost=10)
    (large,) = take(jobs.db)
    jobs.progress(large, "a", done=0.2)
    jobs.settle(large, "a", "cancelled")
    owed = jobs.db.read(lambda c: c.execute(select(lane.c.deficit).where(lane.c.space == "a")).scalars().all())
    assert owed == [0.0, 0.0], "a hundred were used of a turn of a hundred"
    order = [r.workspace for r in take(jobs.db, 20)]
    assert order == ["b"] * 10 + ["a"] * 10


def test_a_job_that_goes_back_to_the_queue_is_paid_for_once(jobs: Any) -> None:
    jobs.add(workspace="a", cost=300)
    for _ in range(3):
        (row,) = take(jobs.db)
        assert jobs.release(row, "a", crashed=False)
    (row,) = take(jobs.db)
    jobs.lapse(row.id)
    jobs.reclaim()
    take(jobs.db)
    owed = jobs.db.read(lambda c: set(c.execute(select(lane.c.deficit)).scalars()))
    assert owed == {-200.0}


def test_bulk_work_is_claimed_beside_what_is_urgent_and_the_room_of_each_class_holds(jobs: Any) -> None:
    for _ in range(10):
        jobs.add(priority=1, cost=40)
        jobs.add(priority=2, cost=40)

    def room(_kind: str, priority: int) -> Room:
        return Room(5, cost=60.0, busy=frozenset("w")) if priority == 1 else Room(3)

    assert [r.priority for r in take(jobs.db, 64, room=room)] == [1, 1, 2, 2, 2]


def test_small_work_overtakes_the_large_of_the_same_workspace_where_there_is_room_for_it_alone(jobs: Any) -> None:
    jobs.add(cost=1000)
    small = jobs.add(cost=5)
    other = jobs.add(cost=5, principal="other")
    full = Room(8, cost=100, large=0, busy=frozenset("w"))
    assert {r.id for r in take(jobs.db, 64, room=lambda *_: full)} == {small, other}
    assert take(jobs.db, 64, room=lambda *_: full) == []


def test_the_first_job_of_another_workspace_finds_room_but_not_its_second_in_the_round(jobs: Any) -> None:
    """However full the worker is of somebody's large jobs."""
    for _ in range(5):
        jobs.add(workspace="a", cost=1000)
    (large,) = take(jobs.db, 64, room=lambda *_: Room(1, large=1))
    full = Room(0, cost=0, large=0, busy=frozenset("a"))
    got = []
    for _ in range(12):
        jobs.add(workspace="b", cost=20)
        got += take(jobs.db, 64, room=lambda *_: full)
    assert [r.workspace for r in got] == ["b"] * 5, "a turn of a hundred, of which nobody has to wait for a thousand"
    jobs.settle(large, "a")
    order = [r.workspace for r in take(jobs.db, 64, room=lambda *_: Room(60, cost=1000, large=1))]
    assert order[:7] == ["b"] * 7, "the large ones of the other are paid for first"


def test_two_servers_are_fair_together(jobs: Any, url: str) -> None:
    """Turn by turn, each server with a connection of its own: the lanes are in the database."""
    for n in range(120):
        jobs.add(workspace="many", cost=5)
        if n < 6:
            jobs.add(workspace="large", cost=90)
    other = Database(url)
    try:
        rows = []
        for n in range(60):
            rows += take((jobs.db, other)[n % 2], 1, owner=f"server {n % 2}", quantum=60)
    finally:
        other.close()
    got = spent(rows)
    assert abs(got["many"] - got["large"]) <= 60 + 90
    assert spent(rows, "owner").keys() == {"server 0", "server 1"}
    assert len({r.id for r in rows}) == len(rows) == 60


def test_a_claim_uses_the_index_of_free_jobs(jobs: Any) -> None:
    """Otherwise it would read the whole queue each time."""
    jobs.add()

    def plan(conn: Any) -> str:
        if jobs.db.sqlite:
            said = conn.exec_driver_sql("EXPLAIN QUERY PLAN " + claims.FLOWS["sqlite"].text)
        else:
            conn.exec_driver_sql("SET LOCAL enable_seqscan = off")  # a table of one row is quicker read through
            said = conn.exec_driver_sql("EXPLAIN " + claims.FLOWS["postgresql"].text)
        return "\n".join(str(tuple(r)) for r in said)

    found = jobs.db.write(plan)
    assert found.count("ix_job_free") == 5, found
    if jobs.db.sqlite:
        assert "kind=? AND priority=? AND workspace=? AND principal>?" in found
        assert "TEMP B-TREE" not in found, "nothing is sorted"
