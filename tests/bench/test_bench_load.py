"""Requests that wait for nobody, and what is made of their answers; requests that nobody would send."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import httpx
import pytest

from fanlight.bench import _mutants as mutants, fuzz, load
from fanlight.bench._arrivals import Phase, arrive
from fanlight.bench._table import replaced


def phase(seconds: float, pause: float, statuses: tuple[int, ...] = (200,)) -> Phase:
    async def ask(number: int) -> httpx.Response:
        await asyncio.sleep(pause)
        return httpx.Response(statuses[number % len(statuses)])

    return asyncio.run(arrive({"record": (0.5, ask), "live": (0.5, ask)}, 200.0, seconds, random.Random(1)))


def test_arrivals_wait_for_no_answer_and_latency_counts_from_when_they_were_due() -> None:
    found = phase(0.5, 0.3)
    assert 60 < found.due < 140, "as many as were due, although each answer took longer than many arrivals"
    assert found.good == found.due and found.p("record", 50) >= 290 and found.p("live", 5) >= 290


def test_refusals_overtaken_edits_and_errors_are_told_apart() -> None:
    found = phase(0.5, 0.0, (200, 429, 409, 500))
    assert found.refused and found.dropped and found.good
    assert {k.split(":")[0] for k in found.errors} == {"record", "live"} and any("409" in k for k in found.errors)
    assert found.good + len(found.refused) + found.dropped + found.errors.total() == found.due


@pytest.mark.parametrize("grows", [0.0, 0.5, 12.0])
def test_the_slope_of_memory_is_not_moved_by_one_large_request(grows: float) -> None:
    sizes = [(5.0 * n, 500 + grows * 5 * n / 60) for n in range(60)]
    sizes[40] = (200.0, 900.0)
    assert abs(load.slope(sizes) - grows) < 0.01
    assert load.slope([]) == 0.0


def test_recovery_is_when_the_last_slow_window_was_over() -> None:
    held, after = Phase(), Phase()
    held.answered["record"] = [10.0] * 100
    after.when = [(n / 10, "record", 100.0 if n < 50 else 11.0) for n in range(200)]
    assert load.recovered(after, held) == 6.0
    after.when = [(n / 10, "record", 11.0) for n in range(200)]
    assert load.recovered(after, held) == 0.0


def test_shares_are_those_that_are_stated() -> None:
    browsing = sum(v for k, v in load.SHARES.items() if k not in ("live", "new"))
    assert browsing == pytest.approx(0.7) and load.SHARES["live"] == 0.2 and load.SHARES["new"] == 0.1


def test_a_mutant_is_another_value_and_leaves_the_original() -> None:
    rng, value = random.Random(3), {"a": [1, {"b": "x"}], "c": None}
    kept = json.dumps(value)
    made = [mutants.mutated(value, rng) for _ in range(300)]
    assert json.dumps(value) == kept
    assert sum(repr(m) != repr(value) for m in made) > 250
    assert len({mutants.text(value, rng) for _ in range(300)}) > 20
    assert len({mutants.head("/x", {"host": "h"}, rng) for _ in range(100)}) > 90


def test_an_address_has_no_parameter_left() -> None:
    rng = random.Random(4)
    for _ in range(300):
        made = mutants.address("/api/v1/explanations/{id}/export.{form}", ["known"], rng)
        assert "{" not in made and made.isascii() and " " not in made


@pytest.mark.parametrize("name", ["fuzz", "load"])
def test_the_document_has_a_place_for_it(root: Path, name: str) -> None:
    text = (root / "docs" / "measurements.md").read_text()
    assert replaced(text, name, "rows") != text


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_thousand_hostile_requests_find_nothing() -> None:
    run = fuzz.run(["--requests", "1000", "--seed", "1"])
    missed = {k: v.value for k, v in run.items() if getattr(v, "met", None) is False and k != "requests"}
    assert missed == {}, run["found"]
