"""Quotas of a workspace: they hold for everybody in it together, and for nobody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import insert

from fanlight.errors import TooBusy
from fanlight.store.people import workspace


def limited(jobs: Any, **most: int) -> None:
    """The workspace that the jobs of these tests are in."""
    jobs.db.write(lambda c: c.execute(insert(workspace).values(id="w", name="W", created=0, **most)))


def test_unfinished_jobs_of_all_its_people_count(jobs: Any) -> None:
    limited(jobs, most_jobs=2)
    jobs.add(principal="a")
    jobs.add(principal="b")
    with pytest.raises(TooBusy, match="2 unfinished jobs") as caught:
        jobs.add(principal="c")
    assert caught.value.code == "quota" and caught.value.allowed == 2 and caught.value.retry_after
    (row,) = jobs.claim("worker")
    jobs.settle(row, "worker")
    jobs.add(principal="c")


def test_forward_passes_count_and_a_job_alone_is_let_in(jobs: Any) -> None:
    limited(jobs, most_cost=100)
    jobs.add(cost=500)
    with pytest.raises(TooBusy, match="500 forward passes of work ahead; this is 1"):
        jobs.add(cost=1)


def test_less_urgent_work_and_what_the_server_does_itself_count_nothing(jobs: Any) -> None:
    limited(jobs, most_jobs=1)
    jobs.add(priority=2)
    jobs.add(kind="trust", priority=3)
    jobs.add(priority=1)
    with pytest.raises(TooBusy):
        jobs.add(priority=1)


def test_another_workspace_is_not_held_back(jobs: Any) -> None:
    jobs.db.write(lambda c: c.execute(insert(workspace).values(id="other", name="O", created=0, most_jobs=0)))
    for _ in range(3):
        jobs.add()


def test_it_holds_when_many_ask_at_once(jobs: Any) -> None:
    limited(jobs, most_jobs=5)

    def ask(_: int) -> bool:
        try:
            jobs.add()
        except TooBusy:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(16))) == 5
