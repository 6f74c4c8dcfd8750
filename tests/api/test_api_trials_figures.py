"""Figures of a trial: moves, classes, and an interval that covers what it says it covers."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import NamedTuple

import pytest

from fanlight.service.trials_figures import difference, move, summary


class Seen(NamedTuple):
    label: str | None
    before: str
    after: str


def test_what_became_of_a_prediction() -> None:
    assert move("blue_tit", "wren", "Blue tit") == "corrected"
    assert move("blue_tit", "blue-tit", "wren") == "spoiled"
    assert move("blue_tit", "wren", "rook") == "other" == move(None, "wren", "rook")
    assert move("blue_tit", "wren", "wren") == "same" == move(None, "rook", "rook")


def test_classes_say_who_gained_and_who_lost() -> None:
    found = [
        *[Seen("wren", "rook", "wren")] * 3,
        Seen("rook", "rook", "wren"),
        Seen("rook", "rook", "rook"),
        Seen("kite", "rook", "gull"),
        Seen(None, "gull", "rook"),
    ]
    told = summary("t", found, 9, complete=False)
    assert (told.n, told.total, told.labelled, told.complete) == (7, 9, 6, False)
    assert (told.before.count, told.after.count, told.corrected, told.spoiled, told.moved) == (2, 4, 3, 1, 6)
    assert told.change.value == pytest.approx(2 / 6)
    by = {c.name: c for c in told.classes}
    assert list(by) == ["wren", "rook"], "the kite was never right, and as many were taken for a gull before as after"
    assert (by["wren"].gained, by["wren"].lost, by["wren"].labelled) == (3, 0, 3)
    assert (by["rook"].gained, by["rook"].lost, by["rook"].predicted_before, by["rook"].predicted_after) == (0, 1, 6, 2)


def test_nothing_finished_has_no_figures() -> None:
    told = summary("t", [], 5, complete=False)
    assert told.before.value is told.after.value is told.change.value is None and told.classes == []


@pytest.mark.parametrize("n", [10, 30])
@pytest.mark.parametrize(("gain", "loss"), [(0.05, 0.05), (0.3, 0.1), (0.4, 0.4), (0.02, 0.0), (0.5, 0.05)])
def test_the_interval_of_a_change_covers_it_about_as_often_as_it_says(n: int, gain: float, loss: float) -> None:
    """By all outcomes of n pictures of which each is corrected or spoiled with given probabilities."""
    covered = 0.0
    for up, down in product(range(n + 1), repeat=2):
        if up + down > n:
            continue
        chance = comb(n, up) * comb(n - up, down) * gain**up * loss**down * (1 - gain - loss) ** (n - up - down)
        found = difference(up, down, n)
        assert found.value is not None and found.lo is not None and found.hi is not None
        assert -1 <= found.lo <= found.hi <= 1
        covered += chance * (found.lo <= gain - loss <= found.hi)
    assert 0.92 <= covered <= 1
