"""What the page of words reads: standard errors of the atoms, against the terms they are sums of, one pixel after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fanlight.artifact import Artifact
from fanlight.drawing.information import NAMES, Read
from fanlight.drawing.words import Words

P, SIDE = 12, 4


def stored(rng: np.random.Generator, rule: str = "min", chances: list[float] | None = None) -> Artifact:
    terms = rng.gamma(0.7, 0.02, (5, P, SIDE, SIDE)).astype(np.float32)
    words = [[0, 3, "red"], [4, 7, "cat"]]
    meta: dict[str, Any] = {
        "unit": "nat", "target": {"drawn": True}, "prompt": "red cat", "cut": "", "fitted": "", "tokens": words, "words": words,
        "singles": [3, 4], "pairs": [[0, 1, 0, 1, 2]], "pair": [0, 1], "rule": rule, "chances": chances, "band": None, "context": True,
        "removal": "delete", "nodes": 2 * P, "evaluations": 96, "drawn": {"seed": 0, "steps": 4, "guidance": 1.0}, "floored": True,
        "redrawn": None, "redrawn_as": "", "redrawn_words": [], "edits": [],
    }  # fmt: skip
    arrays = {
        "terms": terms,
        "signed": rng.normal(0.1, 1, (5, P)),
        "alpha": np.linspace(-4, 6, P),
        "weight": np.ones(P),
        "floor": np.zeros((SIDE, SIDE), np.float32),
        "attention": np.zeros((0, SIDE, SIDE), np.float32),
        "picture": np.zeros((SIDE, SIDE, 3), np.uint8),
        "changed": np.zeros((0, 0, 3), np.uint8),
        "difference": np.zeros((0, 0), np.float32),
    }
    return Artifact("words", "words", arrays, meta).check()


def naive(terms: list[float]) -> float:
    """Standard error of the mean, from differences between neighbours."""
    steps = sum((b - a) ** 2 for a, b in zip(terms, terms[1:], strict=False))
    return math.sqrt(steps / (2 * len(terms) * (len(terms) - 1)))


@pytest.mark.parametrize(("rule", "chances"), [("min", None), ("pointwise", None), ("pointwise", [0.5, 0.499])])
def test_errors_of_atoms_are_those_of_the_terms_they_are_made_of(rule: str, chances: list[float] | None) -> None:
    made = stored(np.random.default_rng(4), rule, chances)
    read = Read(made)
    assert list(read.errors) == list(NAMES) == list(read.maps)
    less = [-math.log(p) - min(-math.log(q) for q in chances) for p in chances] if chances else [0.0, 0.0]
    both_ways = set()
    for r in range(SIDE):
        for c in range(SIDE):
            a, b, ab = ([float(v) for v in made.arrays["terms"][m, :, r, c]] for m in range(3))
            one, other = sum(a) / P - less[0], sum(b) / P - less[1]
            first = one <= other if rule == "min" else one >= other
            both_ways.add(first)
            shared = a if first else b
            wanted = {
                "redundant": shared,
                "unique_a": [x - s for x, s in zip(a, shared, strict=True)],
                "unique_b": [x - s for x, s in zip(b, shared, strict=True)],
                "synergy": [z - x - y + s for x, y, z, s in zip(a, b, ab, shared, strict=True)],
            }
            for name, terms in wanted.items():
                assert read.errors[name][r, c] == pytest.approx(naive(terms), abs=1e-12), (name, r, c)
    assert both_ways == {True, False}


def test_a_page_gets_each_word_by_itself_as_a_map_with_errors() -> None:
    made = stored(np.random.default_rng(5))
    told = Words().detail(made)
    assert [s["word"] for s in told["singles"]] == [0, 1]
    for single, m in zip(told["singles"], (3, 4), strict=True):
        assert np.allclose(single["values"], made.arrays["terms"][m].mean(0), rtol=1e-3)
        assert np.shape(single["errors"]) == (SIDE, SIDE) and single["sum"] == pytest.approx(
            np.sum(single["values"]), rel=1e-3
        )


def test_a_caveat_of_the_model_is_said_and_nothing_of_it_is_calibrated() -> None:
    made = stored(np.random.default_rng(5))
    marked = Artifact("words", "words", made.arrays, {**made.meta, "caveat": "It is no denoiser."}).check()
    assert Read(made).calibrated("both") and not Read(marked).calibrated("both")
    assert "It is no denoiser." in Words().sentence(marked)
    assert Words().detail(made)["caveat"] == "" and Words().detail(marked)["caveat"]
