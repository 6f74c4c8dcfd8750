"""What is told to people who wait counts what will really run before theirs."""

from __future__ import annotations

from typing import Any

import pytest

from fanlight.service.waiting import Backlog, Waiting
from fanlight.store import claims, sight


def ahead(jobs: Any, name: str) -> float:
    return jobs.db.read(lambda c: Waiting(jobs.db).ahead(c, jobs.row(name)))


def test_others_count_as_much_as_they_really_get_before(jobs: Any) -> None:
    for _ in range(100):
        jobs.add(workspace="many", cost=10)
    jobs.add(workspace="few", cost=30)
    mine = [jobs.add(workspace="mine", cost=50) for _ in range(3)]
    assert ahead(jobs, mine[0]) == 50 + 30, "as much of the many as mine costs, and all of the few"
    assert ahead(jobs, mine[2]) == 100 + 150 + 30


def test_what_was_asked_for_later_counts_where_its_turn_comes_first(jobs: Any) -> None:
    mine = [jobs.add(workspace="mine", cost=100) for _ in range(2)]
    jobs.add(workspace="new", cost=60)
    assert ahead(jobs, mine[1]) == 100 + 60


def test_more_urgent_work_and_what_is_held_count_whoever_asked(jobs: Any) -> None:
    jobs.add(workspace="other", priority=0, cost=7)
    jobs.add(workspace="other", cost=40)
    (urgent, held) = jobs.claim("server", 2)
    assert (urgent.priority, held.cost) == (0, 40)
    jobs.progress(held, "server", done=0.25)
    mine = jobs.add(workspace="mine", cost=5)
    jobs.add(workspace="other", priority=2, cost=1000)
    assert ahead(jobs, mine) == 7 + 30


def test_people_of_the_same_workspace_take_turns_too(jobs: Any) -> None:
    for _ in range(10):
        jobs.add(principal="busy", cost=10)
    mine = jobs.add(principal="me", cost=20)
    assert ahead(jobs, mine) == 20


def test_what_a_worker_has_taken_waits_for_what_it_took_before(jobs: Any) -> None:
    for _ in range(3):
        jobs.add(workspace="other", cost=10)
    mine = jobs.add(cost=5)
    assert len(jobs.claim("server", 4)) == 4
    assert ahead(jobs, mine) == 30


def test_others_are_counted_inside_a_request_that_may_not_see_them(jobs: Any) -> None:
    for _ in range(3):
        jobs.add(workspace="other", cost=30)
    mine = jobs.add(workspace="mine", cost=50)
    waiting, row = Waiting(jobs.db), jobs.row(mine)
    with sight.visitor("mine"):
        assert jobs.db.read(lambda c: waiting.ahead(c, row)) == 50


def test_a_weight_shortens_the_wait() -> None:
    waiting = {"mine": {"me": 100.0}, "other": {"them": 1000.0}}
    assert Backlog(0, waiting, {}).ahead("mine", "me", 0, 100) == 100
    assert Backlog(0, waiting, {"mine": 4}).ahead("mine", "me", 0, 100) == 25


@pytest.mark.parametrize("spread", [1, 3])
def test_what_is_told_is_what_happens(jobs: Any, spread: int) -> None:
    """To a turn and a job of each other workspace."""
    for n in range(60):
        jobs.add(workspace=f"w{n % 3}", principal=f"p{n % spread}", cost=20)
    mine = [jobs.add(workspace="mine", cost=20) for _ in range(10)]
    told = ahead(jobs, mine[-1])
    rows = jobs.db.write(lambda c: claims.claim(c, "a", {"explain": 99}, quantum=40))
    before = sum(r.cost for r in rows[: [r.id for r in rows].index(mine[-1])])
    assert abs(told - before) <= 3 * (40 + 20)
