"""The compute core with a device of our making: order, batches, cancellation, deadlines, memory, poison."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from fakes import FakeExecutor, work

from fanlight.engine.base import Event
from fanlight.engine.core import ACTIVE, AGEING, Core


class Clock:
    def __init__(self) -> None:
        self.t = 0.0

    def __call__(self) -> float:
        return self.t


class Bench:
    """A core, its executor, its clock and what it said."""

    def __init__(self) -> None:
        self.clock, self.executor = Clock(), FakeExecutor()
        self.events: list[Event] = []
        self.core = Core(self.executor, self.events.append, clock=self.clock)

    def submit(self, *works: object) -> None:
        for w in works:
            self.core.submit(w)  # type: ignore[arg-type]

    def turns(self, n: int) -> None:
        for _ in range(n):
            self.core.turn(block=False)

    def finish(self) -> None:
        while True:
            while self.core.turn(block=False):
                pass
            if (rest := self.core.rest()) in (None, float("inf")):
                return
            self.clock.t += rest + 0.001

    def last(self) -> dict[str, Event]:
        return {e.job: e for e in self.events if e.last}

    def kinds(self, job: str) -> list[str]:
        return [e.kind for e in self.events if e.job == job]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def order(jobs: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(jobs))


def test_events_of_a_job_come_in_order_and_end_once(bench: Bench) -> None:
    bench.submit(work("a", steps=3))
    bench.finish()
    assert bench.kinds("a") == ["started", "progress", "progress", "progress", "done"]
    assert [e.data["done"] for e in bench.events if e.kind == "progress"] == [0.3333, 0.6667, 1.0]


def test_equal_keys_share_a_batch_and_others_do_not(bench: Bench) -> None:
    bench.submit(work("a", key="k"), work("b", key="other"), work("c", key="k"))
    bench.finish()
    assert sorted(bench.executor.log) == [("a", "c"), ("b",)]


def test_a_batch_is_bounded_by_cost(bench: Bench) -> None:
    bench.submit(*(work(f"j{n}", key="k", cost=5) for n in range(7)))
    bench.finish()
    assert [len(b) for b in bench.executor.log] == [3, 3, 1]


def test_an_idle_core_starts_at_once_without_waiting_for_company(bench: Bench) -> None:
    bench.submit(work("a", key="k"))
    bench.turns(1)
    assert bench.executor.steps == ["a"]


def test_short_work_overtakes_long_work_of_the_same_class_between_two_steps(bench: Bench) -> None:
    bench.submit(work("long", cost=500, steps=50))
    bench.turns(5)
    bench.submit(work("short", cost=2))
    bench.turns(2)
    assert bench.executor.steps == ["long"] * 5 + ["short"]
    assert bench.kinds("short")[-1] == "done"


def test_a_running_batch_is_not_broken_off_by_one_more_of_its_kind(bench: Bench) -> None:
    bench.submit(*(work(f"a{n}", key="k", cost=2, steps=20) for n in range(8)))
    bench.turns(1)
    for n in range(8):
        bench.submit(work(f"b{n}", key="k", cost=2, steps=4))
        bench.turns(1)
    bench.finish()
    assert [len(b) for b in bench.executor.log] == [8, 8]


def test_more_urgent_classes_go_first_whatever_they_cost(bench: Bench) -> None:
    bench.submit(
        work("bulk", priority=2, steps=3), work("trust", priority=3), work("live", priority=0, cost=99, steps=3)
    )
    bench.finish()
    assert order(bench.executor.steps) == ["live", "bulk", "trust"]


def test_what_waits_long_is_promoted_so_nothing_starves(bench: Bench) -> None:
    bench.submit(work("bulk", priority=2, steps=20, cost=100))
    bench.turns(2)
    for n in range(40):
        bench.submit(work(f"s{n}", priority=1, steps=1))
        bench.clock.t += 0.5
        bench.turns(2)
    assert bench.executor.steps.count("bulk") > 2, "the bulk job made no progress in 20 s of steady interactive work"
    assert bench.executor.steps.count("bulk") <= 2 + 20 / AGEING + 1


def test_trust_waits_for_a_quiet_moment_after_interactive_work(bench: Bench) -> None:
    bench.submit(work("trust", priority=3, steps=4), work("picture"))
    bench.turns(3)
    assert bench.executor.steps == ["picture"], "trust began while somebody was at work"
    bench.clock.t += 10
    bench.finish()
    assert bench.kinds("trust")[-1] == "done"


def test_suspended_runs_of_a_class_are_bounded(bench: Bench) -> None:
    for n in range(10):
        bench.submit(work(f"j{n}", steps=5, cost=100 - n))
        bench.turns(1)
    assert len(bench.core.active) <= ACTIVE


def test_cancelling_before_and_during_the_run(bench: Bench) -> None:
    bench.submit(work("a", steps=10), work("b", steps=10))
    bench.core.cancel("b")
    bench.turns(3)
    bench.core.cancel("a")
    bench.finish()
    assert bench.last()["a"].kind == bench.last()["b"].kind == "cancelled"
    assert "b" not in bench.executor.steps
    assert len(bench.executor.steps) <= 3


def test_cancelling_one_of_a_batch_leaves_the_others(bench: Bench) -> None:
    bench.submit(work("a", key="k", steps=3), work("b", key="k", steps=3))
    bench.turns(2)
    bench.core.cancel("a")
    bench.finish()
    assert {j: e.kind for j, e in bench.last().items()} == {"a": "cancelled", "b": "done"}


def test_a_job_past_its_deadline_is_not_started_and_a_running_one_ends(bench: Bench) -> None:
    bench.submit(work("running", steps=10, deadline=5.0))
    bench.turns(2)
    bench.submit(work("late", cost=100, deadline=1.0))
    bench.turns(1)
    bench.clock.t = 6.0
    bench.finish()
    assert {j: e.data["code"] for j, e in bench.last().items()} == {"running": "deadline", "late": "deadline"}
    assert "late" not in bench.executor.steps


def test_out_of_memory_splits_a_batch_until_it_fits(bench: Bench) -> None:
    bench.submit(*(work(f"j{n}", key="k", memory=2) for n in range(8)))
    bench.finish()
    assert all(e.kind == "done" for e in bench.last().values()) and len(bench.last()) == 8
    assert max(len(b) for b in bench.executor.log[2:]) <= 4 and min(len(b) for b in bench.executor.log) <= 2


def test_a_batch_that_did_not_fit_is_not_made_as_large_again(bench: Bench) -> None:
    bench.submit(*(work(f"a{n}", key="k", memory=4) for n in range(8)))
    bench.finish()
    begun = len(bench.executor.log)
    bench.submit(*(work(f"b{n}", key="k", memory=4) for n in range(8)))
    bench.finish()
    assert [len(b) for b in bench.executor.log] == [8, 4, 4, 4, 4] and begun == 3


def test_a_lost_device_ends_the_core_and_blames_what_had_it(bench: Bench) -> None:
    said: list[str] = []
    bench.core.fatal = said.append
    bench.submit(work("a", raises="CUDA error: device-side assert triggered"), work("b"))
    bench.turns(5)
    assert len(said) == 1 and "device-side assert" in said[0]
    assert bench.last() == {} and bench.executor.log == [("a",)], (
        "whoever replaces the process says what becomes of the jobs"
    )


def test_a_single_job_out_of_memory_tries_smaller_chunks_and_then_says_so(bench: Bench) -> None:
    bench.submit(work("fits", memory_chunk=1))
    bench.finish()
    assert bench.last()["fits"].kind == "done"
    bench.submit(work("never", memory_chunk=0))
    bench.finish()
    assert bench.last()["never"].data["code"] == "out_of_memory"
    assert "memory" in bench.last()["never"].data["message"]


def test_of_a_poisoned_batch_only_the_guilty_fails(bench: Bench) -> None:
    bench.submit(work("a", key="k"), work("bad", key="k", raises="the model is broken"), work("c", key="k"))
    bench.finish()
    assert {j: e.kind for j, e in bench.last().items()} == {"a": "done", "bad": "failed", "c": "done"}
    assert bench.last()["bad"].data["code"] == "model_failed"
    assert "the model is broken" in bench.last()["bad"].data["message"]


def test_an_item_with_an_error_of_its_own_does_not_touch_its_company(bench: Bench) -> None:
    bench.submit(work("a", key="k"), work("b", key="k", own_fault=True))
    bench.finish()
    assert bench.executor.log == [("a", "b")]
    assert {j: e.kind for j, e in bench.last().items()} == {"a": "done", "b": "failed"}


def test_what_cannot_be_planned_fails_and_the_core_goes_on(bench: Bench) -> None:
    bench.submit(work("a", unplannable=True), work("b"))
    bench.finish()
    assert {j: e.kind for j, e in bench.last().items()} == {"a": "failed", "b": "done"}
