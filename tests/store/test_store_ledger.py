"""The ledger on SQLite and on PostgreSQL: what was promised is kept, and takes effect once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import delete, select

from fanlight.errors import Conflict, Forbidden, NotFound, TooBusy
from fanlight.store import claims, ledger
from fanlight.store.database import Database
from fanlight.store.ledger import LEASE, MAX_CRASHES
from fanlight.store.tables import explanation


def test_a_job_starts_queued_with_its_first_watcher(jobs: Any) -> None:
    row = jobs.row(jobs.add(cost=7))
    assert (row.state, row.attempt, row.crashes, row.owner, row.cost) == ("queued", 0, 0, None, 7)
    assert jobs.cancel(row.id), "the one who asked may cancel it, and is the last to leave"


def test_a_full_queue_says_when_to_come_back(jobs: Any) -> None:
    jobs.add(cost=90)
    jobs.add(cost=10, queue_limit=100)
    with pytest.raises(TooBusy) as caught:
        jobs.add(cost=1, queue_limit=100, throughput=20)
    assert caught.value.retry_after == 5 and caught.value.allowed == 100
    assert caught.value.status == 429 and "queue of this server is full" in caught.value.message


def test_retry_after_stays_within_a_second_and_a_minute(jobs: Any) -> None:
    jobs.add(cost=100_000)
    for throughput, expected in ((1e9, 1), (0.0, 60)):
        with pytest.raises(TooBusy) as caught:
            jobs.add(cost=1, queue_limit=1, throughput=throughput)
        assert caught.value.retry_after == expected


def test_an_empty_queue_takes_a_job_larger_than_the_limit(jobs: Any) -> None:
    assert jobs.add(cost=1000, queue_limit=10)


def test_trust_does_not_count_against_what_people_wait_for(jobs: Any) -> None:
    jobs.add(kind="trust", cost=1000, priority=3)
    assert jobs.add(cost=10, queue_limit=100, principal_limit=1)


def test_one_person_has_a_bounded_number_of_unfinished_jobs(jobs: Any) -> None:
    jobs.add(principal_limit=1)
    with pytest.raises(TooBusy, match="1 unfinished"):
        jobs.add(principal_limit=1)
    jobs.add(principal="somebody else", principal_limit=1)
    (row,) = jobs.claim("a")
    jobs.settle(row, "a")
    jobs.add(principal_limit=1)


def test_limits_hold_when_many_ask_at_once(jobs: Any) -> None:
    def ask(_: int) -> bool:
        try:
            jobs.add(cost=10, queue_limit=70)
        except TooBusy:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(ask, range(24))) == 7


def test_claims_go_by_priority_and_then_by_age(jobs: Any) -> None:
    names = [jobs.add(priority=p) for p in (2, 1, 1, 0)]
    assert [r.id for r in jobs.claim("a", 3)] == [names[3], names[1], names[2]]
    assert [r.id for r in jobs.claim("a", 3)] == [names[0]]
    assert jobs.claim("a", 3) == []


def test_a_claim_takes_only_its_kinds(jobs: Any) -> None:
    jobs.add(kind="trust")
    assert jobs.claim("a") == []
    (row,) = jobs.claim("a", kind="trust")
    assert row.attempt == 1 and row.owner == "a"
    assert 0 < row.lease_until - row.claimed <= LEASE


def test_several_owners_at_once_never_claim_the_same_job(jobs: Any, url: str) -> None:
    names = {jobs.add() for _ in range(40)}
    taken: list[str] = []
    lock = threading.Lock()

    def work(owner: str) -> None:
        other = Database(url)  # as another server would: a writer of its own
        try:
            while rows := other.write(lambda c: claims.claim(c, owner, {"explain": 3})):
                with lock:
                    taken.extend(r.id for r in rows)
        finally:
            other.close()

    threads = [threading.Thread(target=work, args=(f"owner {n}",)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(taken) == len(set(taken)) and set(taken) == names


def test_a_result_is_accepted_once_and_only_from_the_attempt_that_holds_the_job(jobs: Any) -> None:
    jobs.add()
    (row,) = jobs.claim("a")
    assert not jobs.settle(row, "b"), "another owner"
    assert jobs.settle(row, "a") and jobs.row(row.id).state == "succeeded"
    assert not jobs.settle(row, "a"), "twice"
    done = jobs.row(row.id)
    assert (done.owner, done.lease_until, done.progress) == (None, None, 1.0) and done.finished


def test_a_zombie_that_wakes_after_its_lease_changes_nothing(jobs: Any) -> None:
    jobs.add()
    (old,) = jobs.claim("zombie")
    jobs.lapse(old.id)
    assert jobs.reclaim() == []
    (new,) = jobs.claim("heir")
    assert (new.id, new.attempt) == (old.id, 2)
    assert not jobs.progress(old, "zombie")
    assert not jobs.settle(old, "zombie")
    assert not jobs.release(old, "zombie", crashed=True)
    assert jobs.renew("zombie", [old.id]) == {old.id}, "it is told to stop"
    assert jobs.row(old.id).owner == "heir"
    assert jobs.settle(new, "heir") and jobs.row(new.id).state == "succeeded"


def test_the_same_owner_is_fenced_from_its_own_earlier_attempt(jobs: Any) -> None:
    jobs.add()
    (first,) = jobs.claim("a")
    assert jobs.release(first, "a", crashed=False)
    (second,) = jobs.claim("a")
    assert second.attempt > first.attempt
    assert not jobs.settle(first, "a")
    assert jobs.settle(second, "a")


def test_a_lease_that_is_not_over_protects(jobs: Any) -> None:
    jobs.add()
    (row,) = jobs.claim("a")
    assert jobs.reclaim() == [] and jobs.claim("b") == []
    assert jobs.row(row.id).owner == "a"


def test_what_one_works_on_is_not_taken_however_late_the_clock_says_it_is(jobs: Any) -> None:
    """A machine that was asleep, or a clock that was set, must not make a server start a job twice."""
    jobs.add()
    (row,) = jobs.claim("a")
    jobs.lapse(row.id)
    jobs.reclaim(held=[row.id])
    assert jobs.claim("a") == []
    assert jobs.renew("a", [row.id]) == set()
    assert jobs.row(row.id).lease_until > row.claimed
    assert jobs.settle(row, "a")


def test_a_lease_is_renewed_only_for_what_is_really_worked_on(jobs: Any) -> None:
    """What an owner has lost sight of comes back when its lease is over."""
    kept, lost = jobs.add(), jobs.add()
    jobs.claim("a", 2)
    for name in (kept, lost):
        jobs.lapse(name)
    jobs.renew("a", [kept])
    jobs.reclaim(held=[kept])
    assert [r.id for r in jobs.claim("b", 5)] == [lost]


def test_renewing_tells_what_to_stop(jobs: Any) -> None:
    going, cancelled, deleted = jobs.add(), jobs.add(), "no such job"
    jobs.claim("a", 5)
    jobs.cancel(cancelled)
    assert jobs.renew("a", [going, cancelled, deleted]) == {cancelled, deleted}


def test_a_job_given_back_without_fault_may_come_back_any_number_of_times(jobs: Any) -> None:
    jobs.add()
    for n in range(1, 3 * MAX_CRASHES):
        (row,) = jobs.claim("a")
        assert row.attempt == n
        jobs.progress(row, "a")
        assert jobs.release(row, "a", crashed=False)
    assert jobs.row(row.id).crashes == 0


def test_a_job_that_crashes_too_often_is_not_given_back(jobs: Any) -> None:
    jobs.add()
    for _ in range(MAX_CRASHES - 1):
        (row,) = jobs.claim("a")
        assert jobs.release(row, "a", crashed=True)
    (row,) = jobs.claim("a")
    assert not jobs.release(row, "a", crashed=True)
    assert jobs.row(row.id).owner == "a", "it is still held, to be settled"
    assert jobs.settle(row, "a", "failed") and jobs.row(row.id).state == "failed"


def test_a_dead_server_frees_all_it_held_and_blames_only_what_ran(jobs: Any) -> None:
    ran, waited = jobs.add(), jobs.add()
    for n in range(1, MAX_CRASHES + 1):
        rows = {r.id: r for r in jobs.claim(f"server {n}", 5)}
        assert set(rows) == {ran, waited}
        jobs.progress(rows[ran], f"server {n}")
        assert jobs.reclaim(dead=True) == ([ran] if n == MAX_CRASHES else [])
    assert (jobs.row(ran).crashes, jobs.row(waited).crashes) == (MAX_CRASHES, 0)
    jobs.db.write(lambda c: ledger.close(c, [ran], "failed", {"code": "worker_crashed"}))
    assert jobs.row(ran).state == "failed"
    assert [r.id for r in jobs.claim("b", 5)] == [waited]


def test_a_lapsed_lease_counts_as_a_crash_too(jobs: Any) -> None:
    jobs.add()
    for n in range(1, MAX_CRASHES + 1):
        (row,) = jobs.claim("a")
        jobs.progress(row, "a")
        jobs.lapse(row.id)
        assert jobs.reclaim() == ([row.id] if n == MAX_CRASHES else [])


def test_progress_makes_a_job_running_and_so_its_record(jobs: Any) -> None:
    jobs.add()
    (row,) = jobs.claim("a")
    assert jobs.progress(row, "a", 0.25)
    seen = jobs.row(row.id)
    assert (seen.state, seen.progress, seen.message) == ("running", 0.25, "working") and seen.started
    state = select(explanation.c.state).where(explanation.c.id == row.explanation)
    assert jobs.db.read(lambda c: c.execute(state).scalar()) == "running"
    started = seen.started
    jobs.progress(row, "a", 0.5)
    assert jobs.row(row.id).started == started


def test_a_job_is_cancelled_when_the_last_has_left(jobs: Any) -> None:
    name = jobs.add(principal="anna")
    jobs.watch(name, "ben")
    jobs.watch(name, "ben")
    assert not jobs.cancel(name, "anna")
    assert not jobs.row(name).cancel_requested
    with pytest.raises(Forbidden):
        jobs.cancel(name, "anna")
    assert jobs.cancel(name, "ben")
    assert jobs.row(name).cancel_requested
    assert jobs.claim("a") == [] and jobs.overdue() == [name]


def test_who_comes_back_before_it_stopped_gets_the_job_after_all(jobs: Any) -> None:
    name = jobs.add(principal="anna")
    jobs.cancel(name, "anna")
    assert not jobs.db.read(lambda c: ledger.wanted(c, name))
    jobs.watch(name, "ben")
    assert jobs.db.read(lambda c: ledger.wanted(c, name))
    assert [r.id for r in jobs.claim("a")] == [name]


def test_only_those_who_asked_can_cancel_and_only_what_is_open(jobs: Any) -> None:
    name = jobs.add()
    with pytest.raises(Forbidden):
        jobs.cancel(name, "stranger")
    with pytest.raises(NotFound):
        jobs.cancel("nothing")
    with pytest.raises(NotFound):
        jobs.db.write(lambda c: ledger.cancel(c, "another workspace", name, "p"))
    (row,) = jobs.claim("a")
    jobs.settle(row, "a")
    with pytest.raises(Conflict, match="succeeded"):
        jobs.cancel(name)


def test_overdue_are_free_jobs_past_their_deadline(jobs: Any) -> None:
    late, held, _later, _never = (jobs.add(deadline=d) for d in (-1, -1, 10**9, None))
    jobs.change(held, owner="a", lease_until=2**60)
    assert jobs.overdue() == [late]
    jobs.db.write(lambda c: ledger.close(c, [late, held], "expired"))
    assert (jobs.row(late).state, jobs.row(held).state) == ("expired", "queued"), "what somebody holds is not closed"


def test_the_place_in_the_queue_counts_what_goes_first(jobs: Any) -> None:
    first, low, urgent = jobs.add(priority=1), jobs.add(priority=2), jobs.add(priority=0)
    last = jobs.add(priority=1)
    places = {n: jobs.db.read(lambda c, n=n: ledger.place(c, jobs.row(n))) for n in (first, low, urgent, last)}
    assert places == {urgent: 0, first: 1, last: 2, low: 3}


def test_deleting_a_record_deletes_its_job_and_drops_a_late_result(jobs: Any) -> None:
    jobs.add()
    (row,) = jobs.claim("a")
    jobs.db.write(lambda c: c.execute(delete(explanation).where(explanation.c.id == row.explanation)))
    assert not jobs.settle(row, "a")


def test_what_was_begun_is_running_and_only_where_its_owner_still_has_it(jobs: Any) -> None:
    for _ in range(3):
        jobs.add()
    mine, lost, over = jobs.claim("a", 3)
    jobs.change(lost.id, owner="b")
    jobs.settle(over, "a")
    jobs.db.write(lambda c: ledger.started(c, "a", [mine, lost, over]))
    assert [jobs.row(r.id).state for r in (mine, lost, over)] == ["running", "queued", "succeeded"]
    assert jobs.row(mine.id).started is not None and jobs.row(lost.id).started is None


def test_ids_are_unguessable_and_fit_in_an_address() -> None:
    ids = {ledger.new_id() for _ in range(2000)}
    assert len(ids) == 2000 and all(len(i) == 16 and i.isascii() and i.isalnum() for i in ids)
