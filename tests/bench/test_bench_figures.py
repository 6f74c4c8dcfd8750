"""The arithmetic of the benchmarks; the benchmarks themselves are commands."""

from __future__ import annotations

import json

import pytest

from fanlight.bench import _table, gallery, page, serve
from fanlight.bench._figures import Declared, figures, number, passed, percentile, ratios

DECLARED = {
    "fast": Declared(measures="An answer", unit="ms", at_most=30),
    "much": Declared(measures="Maps per second over offline", at_least=0.9),
    "seen": Declared(measures="Something to know", unit="GiB"),
}


def test_a_percentile_lies_between_its_neighbours() -> None:
    assert percentile([4, 1, 3, 2], 50) == 2.5
    assert percentile(range(101), 95) == 95
    assert percentile([7.0], 95) == 7


def test_a_ratio_is_formed_round_by_round() -> None:
    assert ratios([9, 40], [10, 50]) == [0.9, 0.8]
    with pytest.raises(ValueError):
        ratios([1], [1, 2])


def test_a_figure_is_the_median_of_its_rounds_with_their_ends() -> None:
    found = figures(DECLARED, {"fast": [20, 50, 10]})["fast"]
    assert (found.value, found.lo, found.hi, found.rounds) == (20, 10, 50, 3)
    assert found.spread == "10 to 50"


def test_a_target_may_be_a_ceiling_a_floor_or_none() -> None:
    found = figures(DECLARED, {"fast": [30.0], "much": [0.9], "seen": [99.0]})
    assert [f.met for f in found.values()] == [True, True, None]
    missed = figures(DECLARED, {"fast": [30.1], "much": [0.89]})
    assert [f.met for f in missed.values()] == [False, False]


def test_one_missed_target_fails_the_run_and_an_unmeasured_one_does_not() -> None:
    assert passed(figures(DECLARED, {"fast": [1.0], "seen": [99.0]}))
    assert not passed(figures(DECLARED, {"fast": [31.0], "much": [1.0]}))


def test_what_was_not_declared_is_not_reported() -> None:
    with pytest.raises(KeyError, match="stray"):
        figures(DECLARED, {"stray": [1.0]})


def test_numbers_have_three_digits_and_no_exponent() -> None:
    shown = {0.0456: "0.046", 0.826: "0.826", 2.5: "2.50", 12.34: "12.3", 3026.4: "3,026", 16: "16", 0: "0"}
    assert {value: number(value) for value in shown} == shown


def run(**found: list[float]) -> dict[str, object]:
    """What a benchmark prints, read back."""
    about = {
        "benchmark": "any",
        "date": "2026-01-02",
        "machine": {"cpu": "CPU", "cores": 2, "memory": 24.0, "system": "Linux", "load": 0.5},
        "versions": {"python": "3.11"},
        "options": {"rounds": 3, "only": None},
    }
    made = figures(DECLARED, found, {"fast": "Quiet."})
    return json.loads(json.dumps({**about, **{name: f.model_dump() for name, f in made.items()}}))


def test_a_run_becomes_rows_and_what_was_left_out_is_pending() -> None:
    made = _table.table(DECLARED, run(fast=[10.0, 20.0, 31.0], much=[0.5]))
    assert made.startswith(
        "2026-01-02. CPU, 2 cores, 24 GiB, Linux, load 0.5 at the start. python 3.11. Options: rounds 3."
    )
    assert "| An answer | at most 30 ms | 20 ms | 10 to 31, 3 rounds | Quiet. |" in made
    assert "| Maps per second over offline | at least 0.9 | 0.500 (missed) |  |  |" in made
    assert "| Something to know |  | not yet measured |  |  |" in made


def test_a_table_replaces_the_one_before_and_nothing_else() -> None:
    text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n"
    made = _table.replaced(text, "x", "new\n")
    assert made == "a\n<!-- x -->\n\nnew\n\n<!-- /x -->\nb\n<!-- y -->\nkept\n<!-- /y -->\n"
    with pytest.raises(ValueError, match="z"):
        _table.replaced(text, "z", "new")


@pytest.mark.parametrize("module", [serve, page, gallery])
def test_the_document_has_a_place_for_every_benchmark(module: object, root: object) -> None:
    text = (root / "docs" / "measurements.md").read_text()  # type: ignore[operator]
    name = module.__name__.rsplit(".", 1)[1]  # type: ignore[attr-defined]
    assert _table.replaced(text, name, "rows") != text
    for declared in module.FIGURES.values():  # type: ignore[attr-defined]
        assert f"| {declared.measures} | {declared.target} |" in text
