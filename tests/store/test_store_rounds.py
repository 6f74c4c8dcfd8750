"""Fair turns without a database: exact shares, and nobody starves."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from fanlight.store.rounds import Lane, Round


def served(
    queues: Mapping[str, list[int]], count: int, *, quantum: float = 100, weights: Mapping[str, int] | None = None
) -> list[str]:
    """Whose jobs are taken, one round at a time kept and loaded again as a database would. Args: queues: costs of jobs."""
    waiting = {name: deque(costs) for name, costs in queues.items() if costs}
    kept: dict[str, Lane] = {}
    order = []
    while waiting and len(order) < count:
        turns = Round(kept, waiting, lambda n: quantum * (weights or {}).get(n, 1))
        name = turns.first()
        turns.charge(name, waiting[name].popleft())
        order.append(name)
        if not waiting[name]:
            del waiting[name]
            turns.leave(name)
        kept = turns.lanes
    return order


def test_equal_weights_take_exactly_equal_turns() -> None:
    order = served({"a": [10] * 1000, "b": [50] * 1000}, 120)
    assert order[:24] == ["a"] * 10 + ["b"] * 2 + ["a"] * 10 + ["b"] * 2
    assert Counter(order) == {"a": 100, "b": 20}, "1,000 forward passes each"


def test_weights_divide_the_work_exactly() -> None:
    order = served({"a": [20] * 1000, "b": [20] * 1000, "c": [20] * 1000}, 60, weights={"b": 3, "c": 2})
    assert Counter(order) == {"a": 10, "b": 30, "c": 20}


def test_whoever_comes_waits_for_one_turn_of_each_other() -> None:
    """Ten thousand cheap jobs and a hundred expensive ones are before it; it waits for one turn of each: a quantum, and at most one job beyond."""
    for first in (1, 90, 5000):
        order = served({"cheap": [1] * 10_000, "large": [1000] * 100, "new": [first]}, 10_200)
        assert order.index("new") == 101, "100 cheap ones, one large one"


def test_a_job_larger_than_the_quantum_is_paid_for_afterwards() -> None:
    order = served({"a": [1000] * 3, "b": [10] * 300}, 303)
    marks = [n for n, name in enumerate(order) if name == "a"]
    assert marks == [0, 101, 202], "each 1,000 forward passes of one, then as many of the other"


def test_a_debt_outlives_an_empty_queue_and_ends_with_the_rounds() -> None:
    turns = Round({}, {"a", "b"}, lambda _: 100.0)
    assert turns.first() == "a"
    turns.charge("a", 350)
    turns.leave("a")
    assert turns.lanes["a"].deficit == -250
    for left in (-250, -150, -50, None):
        assert turns.first() == "b"
        turns.charge("b", 100)
        assert (turns.lanes["a"].deficit if "a" in turns.lanes else None) == left


def test_who_waits_for_nothing_saves_nothing() -> None:
    turns = Round({"a": Lane(60, 100, 1)}, {"b"}, lambda _: 100.0)
    assert turns.first() == "b" and set(turns.lanes) == {"b"}


def test_who_comes_back_within_a_round_has_no_second_turn_in_it() -> None:
    turns = Round({}, {"a", "b"}, lambda _: 100.0)
    turns.first()
    turns.charge("a", 70)
    turns.leave("a")
    back = Round(turns.lanes, {"a", "b"}, lambda _: 100.0)
    assert back.lanes["a"].deficit == 30 and back.first() == "b"


def test_alone_nobody_waits_whatever_they_owe() -> None:
    turns = Round({"a": Lane(-1e9, 50, 1), "b": Lane(-10, 50, 2)}, {"a"}, lambda _: 50.0)
    assert turns.first() == "a"
    assert 0 < turns.lanes["a"].deficit <= 50
    assert "b" not in turns.lanes, "what somebody owed who left is over too"


def test_what_is_given_back_is_never_more_than_a_turn() -> None:
    turns = Round({"a": Lane(-30, 100, 1)}, {"a"}, lambda _: 100.0)
    turns.charge("a", -1000)
    assert turns.lanes["a"].deficit == 100


@given(
    costs=st.lists(st.integers(1, 500), min_size=2, max_size=5),
    weights=st.lists(st.integers(1, 4), min_size=5, max_size=5),
    quantum=st.integers(20, 300),
)
def test_nobody_is_ever_further_behind_than_a_turn_and_a_job(
    costs: list[int], weights: list[int], quantum: int
) -> None:
    """While all have work, what they got per weight differs by at most a turn and the largest job (of each of the two compared)."""
    names = [f"n{i}" for i in range(len(costs))]
    given_ = dict(zip(names, weights, strict=False))
    order = served({n: [c] * 400 for n, c in zip(names, costs, strict=True)}, 300, quantum=quantum, weights=given_)
    got: Counter[str] = Counter()
    price = dict(zip(names, costs, strict=True))
    for name in order:
        got[name] += price[name]
        shares = {n: got[n] / given_[n] for n in names}
        slack = {n: quantum + price[n] / given_[n] for n in names}
        for a in names:
            for b in names:
                assert shares[a] - shares[b] <= slack[a] + slack[b] + 1e-6


@pytest.mark.parametrize("quantum", [1, 7, 1000])
def test_everything_is_served_in_the_end(quantum: int) -> None:
    queues = {"a": [3, 900, 1], "b": [10] * 50, "c": [123456]}
    assert Counter(served(queues, 10**6, quantum=quantum)) == {"a": 3, "b": 50, "c": 1}
