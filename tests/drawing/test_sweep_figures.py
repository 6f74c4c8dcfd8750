"""Figures of a sweep: intervals against tables and against how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fanlight.service import sweeps_figures


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (10, 10), (150, 192), (1, 1)])
def test_the_interval_of_a_share_is_that_of_wilson(count: int, n: int) -> None:
    expected = stats.binomtest(count, n).proportion_ci(method="wilson")
    found = sweeps_figures.portion(count, n)
    assert (found.lo, found.hi) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert found.value == count / n


def test_nothing_has_no_share() -> None:
    found = sweeps_figures.portion(0, 0)
    assert (found.value, found.lo, found.hi) == (None, None, None)


@pytest.mark.parametrize("freedom", [1, 2, 9, 30, 31, 60, 500])
def test_quantiles_are_those_of_student(freedom: int) -> None:
    assert sweeps_figures.quantile_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=2e-3)


def test_the_distribution_adds_up_and_no_bar_stands_on_both_sides_of_the_floor() -> None:
    values = list(np.random.default_rng(0).normal(0.2, 0.3, 300))
    found = sweeps_figures.faithful(values, above=200)
    assert sum(found.counts) == found.n == 300 and len(found.edges) == len(found.counts) + 1
    assert min(abs(e) for e in found.edges) < 1e-9
    assert found.edges[0] <= min(values) and max(values) <= found.edges[-1]
    mean, half = np.mean(values), stats.t.ppf(0.975, 299) * stats.sem(values)
    assert (found.mean, found.lo, found.hi) == pytest.approx((mean, mean - half, mean + half), abs=1e-4)
    assert found.quartiles == pytest.approx(np.quantile(values, (0.25, 0.5, 0.75)))


@pytest.mark.parametrize("values", [[], [0.3], [0.0, 0.0], [-0.4], [0.1] * 5])
def test_few_and_equal_values_are_no_error(values: list[float]) -> None:
    found = sweeps_figures.faithful(values, above=0)
    assert sum(found.counts) == len(values)
    assert (found.lo is None) == (len(values) < 2)
