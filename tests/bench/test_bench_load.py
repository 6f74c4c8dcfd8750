"""Requests that wait for nobody, and what is made of their answers; requests that nobody would send."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from fanlight.bench import _mutants as mutants, fuzz, load
from fanlight.bench._arrivals import Phase, arrive
from fanlight.bench._figures import figures, passed
from fanlight.bench._table import replaced
from fanlight.bench._wire import Answer
from fanlight.errors import FanlightError


def phase(seconds: float, pause: float, statuses: tuple[int, ...] = (200,)) -> Phase:
    async def ask(number: int) -> Answer:
        await asyncio.sleep(pause)
        return Answer(statuses[number % len(statuses)], b"")

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


def test_what_was_not_answered_is_no_recovery() -> None:
    held, after = Phase(), Phase(seconds=20.0)
    assert load.recovered(after, held) != load.recovered(after, held), "NaN where there is nothing to compare with"
    held.answered["record"] = [10.0] * 100
    assert load.recovered(after, held) == 20.0, "not a single answer"
    after.when = [(n / 10, "record", 10.0) for n in range(200) if not 80 <= n < 100]
    assert load.recovered(after, held) == 10.0, "none in the window from 8 to 10"
    after.when = [(n / 10, "record", 10.0) for n in range(200)]
    after.unanswered = [12.5]
    assert load.recovered(after, held) == 14.0, "a refusal"
    assert phase(0.5, 0.0, (429, 500)).unanswered, "of both kinds"


def test_a_target_that_was_not_measured_is_not_met() -> None:
    held, over, after = (phase(0.5, 0.0, statuses) for statuses in ((200,), (200, 429), (200,)))
    held.answered["new"], over.answered["new"] = [1.0], [1.0]
    sizes = [(5.0 * n, 500.0) for n in range(load.LOOKS)]
    found = load._found(20.0, held, over, after, sizes)
    wanted = {name for name, d in load.FIGURES.items() if d.target}
    assert wanted <= set(found)
    good = {name: [0.0] for name in load.FIGURES}
    assert passed(figures(load.FIGURES, good), load.FIGURES)
    for name in wanted:
        some = figures(load.FIGURES, {k: v for k, v in good.items() if k != name})
        assert passed(some) and not passed(some, load.FIGURES), name
    assert "memory_slope" not in load._found(20.0, held, over, after, sizes[1:])
    over.refused.clear()
    assert "refused_p95" not in load._found(20.0, held, over, after, sizes)


def test_a_run_with_its_defaults_ends_within_a_quarter_of_an_hour_and_can_tell_what_it_is_for() -> None:
    chosen = load._options([])
    assert chosen.held >= 600 and chosen.overload >= 120
    assert load.planned(chosen) <= 900
    with pytest.raises(SystemExit):
        load._options(["--recovery", "30"])


@pytest.mark.parametrize(("can", "found"), [(45.0, 39.0625), (5.0, 4.8828)])
def test_what_the_server_can_take_is_looked_for_above_and_below_the_first_rate(
    can: float, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[float] = []

    async def arriving(asks: object, rate: float, *_: object, **__: object) -> Phase:
        tried.append(rate)
        made = Phase(seconds=6.0)
        made.answered["record"] = [10.0 if rate <= can else 100.0]
        return made

    monkeypatch.setattr(load, "arrive", arriving)
    monkeypatch.setattr(load, "_left", lambda _: 0)
    monkeypatch.setattr(load, "_quiet", lambda _: None)
    rate = asyncio.run(load._capacity({}, load._options([]), random.Random(0), None))  # type: ignore[arg-type]
    assert rate == pytest.approx(found, rel=0.01) and rate <= can and len(tried) <= load.STEPS


def test_a_server_that_keeps_up_with_nothing_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def arriving(*_: object, **__: object) -> Phase:
        return Phase(seconds=6.0)

    monkeypatch.setattr(load, "arrive", arriving)
    monkeypatch.setattr(load, "_left", lambda _: 0)
    monkeypatch.setattr(load, "_quiet", lambda _: None)
    with pytest.raises(FanlightError, match="did not keep up"):
        asyncio.run(load._capacity({}, load._options([]), random.Random(0), None))  # type: ignore[arg-type]


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
