"""Figures of a study: against a plain loop, exact cases, how often intervals cover, and how a template's words are named."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fanlight.errors import InvalidField
from fanlight.explainers import rewording
from fanlight.service.studies_figures import RESAMPLES, figures, normalised, share
from fanlight_models.diffusion import study, words as numeric


def test_means_and_intervals_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(1, 1, (6, 3))
    values[2, 1] = values[4, 1] = np.nan
    found = figures(values, seed=3)
    draws = np.random.default_rng(3).integers(0, 6, (RESAMPLES, 6))
    for cell in range(3):
        known = [v for v in values[:, cell] if not math.isnan(v)]
        assert found.mean[cell] == pytest.approx(sum(known) / len(known)) and found.n[cell] == len(known)
        means = []
        for draw in draws:
            picked = [values[n, cell] for n in draw if not math.isnan(values[n, cell])]
            if picked:
                means.append(sum(picked) / len(picked))
        lo, hi = (np.quantile(means, p) for p in (share(6), 1 - share(6)))
        assert (found.lo[cell], found.hi[cell]) == (pytest.approx(lo), pytest.approx(hi))


def test_the_tail_is_that_of_student_and_near_the_usual_for_many() -> None:
    # by hand: n = 4, t(3 df, 97.5 %) = 3.182, times sqrt(4 / 3) = 3.674; the normal distribution leaves out 0.000119
    assert share(4) == pytest.approx(0.000119, rel=0.02)
    assert share(10_000) == pytest.approx(0.025, rel=0.01)


def test_intervals_cover_about_as_often_as_they_say() -> None:
    for n, least in ((8, 0.90), (20, 0.92)):
        values = np.random.default_rng(n).normal(0, 1, (n, 600))
        found = figures(values)
        covered = float(((found.lo <= 0) & (found.hi >= 0)).mean())
        assert least < covered <= 0.99, (n, covered)


def test_normalised_tables_run_from_0_to_1_and_know_nothing_of_what_is_missing() -> None:
    np.testing.assert_allclose(normalised(np.array([2.0, np.nan, 4.0, 3.0])), [0, np.nan, 1, 0.5])
    np.testing.assert_array_equal(normalised(np.array([2.0, 2.0])), [0, 0])
    found = figures(np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_allclose(found.normalised, [0, 1, np.nan])
    assert found.n.tolist() == [2, 2, 0] and np.isnan(found.lo[2]) and (found.lo[0], found.hi[0]) == (1, 3)
    one = figures(np.array([[1.0, 2.0]]))
    assert one.mean.tolist() == [1, 2] and np.isnan(one.lo).all() and np.isnan(one.normalised_hi).all()
    assert np.isnan(figures(np.full((3, 2), np.nan)).mean).all()


@pytest.mark.parametrize(
    ("template", "a", "b", "named"),
    [
        ("a {a} {b}", "red", "cat", "red, cat"),
        ("a {b} beside a red {a}", "cat", "red", "cat, red#1"),
        ("the {a}, and the {b}", "the", "an  old man", "the#2, an old man"),
        ("{a}{b}", "snow-", "white", None),
        ("{a} {a} {b}", "x", "y", None),
        ("{a} of the {b}", "fire truck", "fire", "fire truck, fire#2"),
        ("no {a} is {b}", "O'Hara's", "well-known", "O'Hara's, well-known"),
    ],
)
def test_words_of_a_template_are_found_where_they_were_put(template: str, a: str, b: str, named: str | None) -> None:
    assert rewording.WORD.pattern == numeric._WORD.pattern
    if named is None:
        with pytest.raises(InvalidField):
            rewording.of_pair(template, a, b)
        return
    text, said = rewording.of_pair(template, a, b)
    assert said == named
    prompt, wanted_a, wanted_b = study.prompt_of(template, " ".join(a.split()), " ".join(b.split()))
    assert prompt.text == text
    for name, wanted in zip(said.split(", "), (wanted_a, wanted_b), strict=True):
        word, _, which = name.partition("#")
        found = prompt.find(word, int(which) if which else None)
        assert found.start == wanted.start and found.end <= wanted.end
