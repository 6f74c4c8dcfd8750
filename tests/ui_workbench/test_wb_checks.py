"""What was checked further, on the page of an explanation: numbers, offers, progress."""

from __future__ import annotations

from typing import Any

import pytest
from wb_support import flat

from fanlight import wire
from fanlight_ui.views import trust


def reading(value: float) -> wire.Reading:
    return wire.Reading(value=value, lo=value - 0.1, hi=value + 0.1)


MEASURED = wire.Check(
    state="succeeded",
    found=reading(0.9),
    floors={"random": reading(0.05), "edges": reading(1.0)},
    verdict="warn",
    more={"top layer alone": reading(0.95), "by single pixels": reading(0.8)},
    parameters={"layers": 3, "draws": [4, 4, 4]},
)
OFFERED = [
    wire.Measure(name=n, title=t, about="about it", available=True, passes=100, seconds=s)
    for n, t, s in (("stability", "Stability", 8.0), ("randomisation", "Untrained network", 30.0))
]
JOB = wire.Job(
    id="j1", explanation="e", kind="check", state="running", progress=0.4, message="draw 2 of 4", seconds_left=12, mine=True,
    title="Untrained network of Saliency", created=0,
)  # fmt: skip


def strip(checks: dict[str, wire.Check], *rest: Any, **trusted: Any) -> str:
    return flat(trust.strip(wire.Trust(state="unavailable", reason="x.", checks=checks, **trusted), *rest))


def test_a_check_shows_its_number_beside_its_floors_and_says_what_it_means() -> None:
    said = strip({"randomisation": MEASURED})
    assert "Checked further" in said and "Untrained network" in said
    assert "0.90 (0.80 to 1.00)" in said and "random 0.05" in said and "edges 1.00" in said
    assert "it shows the picture, not the model" in said and "meaning warn" in said
    assert '"left": "90.0%"' in said and "mark edges" in said and "mark random" in said


def test_what_is_not_measured_is_offered_with_its_time() -> None:
    said = strip({"randomisation": MEASURED}, OFFERED)
    assert "Not measured yet" in said and "Check further (about 8" in said and "ex-check" in said
    whole = strip({}, OFFERED)
    assert "about 38" in whole and "Untrained network" in whole
    assert "ex-check" not in strip({"randomisation": MEASURED, "stability": MEASURED}, OFFERED)
    assert "ex-check" not in strip({}, None)


def test_what_failed_is_offered_again_and_what_is_waiting_is_not() -> None:
    failed = wire.Check(state="failed", reason="The compute worker ended.")
    said = strip({"stability": failed, "randomisation": wire.Check(state="pending", job="j1")}, OFFERED)
    assert "The compute worker ended." in said and "about 8" in said and "Being measured" in said


def test_what_cannot_be_measured_says_why() -> None:
    closed = [
        m.model_copy(update={"available": False, "reason": "The model has changed.", "seconds": None}) for m in OFFERED
    ]
    said = strip({}, closed)
    assert "It cannot be checked further: The model has changed." in said and "ex-check" not in said


def test_a_running_check_shows_how_far_it_is_and_can_be_left() -> None:
    said = strip({"randomisation": wire.Check(state="pending", job="j1")}, OFFERED[:1], {"j1": JOB})
    assert "draw 2 of 4" in said and "40 %" in said and '"data-job": "j1"' in said
    assert "check-cancel" in said and "Untrained network of Saliency" in said
    theirs = strip(
        {"randomisation": wire.Check(state="pending", job="j1")}, None, {"j1": JOB.model_copy(update={"mine": False})}
    )
    assert "check-cancel" not in theirs


def test_the_pill_says_what_edges_get() -> None:
    known = wire.Trust(
        state="succeeded", faithfulness=0.31, insertion=0.3, deletion=0.32, above_floor=True, edges={"faithfulness": 0.12},
        interval={"faithfulness": wire.Interval(lo=0.2, hi=0.4)},
    )  # fmt: skip
    said = flat(trust.badge(known))
    assert "faithfulness +0.31, edges +0.12" in said and "Edges alone get +0.12." in said
    near = known.model_copy(update={"edges": {"faithfulness": 0.3}})
    assert "does about as well" in trust.words(near) and "does about as well" not in trust.words(known)


@pytest.mark.parametrize("edges", [{}, {"faithfulness": 0.1, "insertion": 0.1, "deletion": 0.1}])
def test_records_with_and_without_edges_are_drawn(edges: dict[str, float]) -> None:
    known = wire.Trust(state="succeeded", faithfulness=0.3, insertion=0.3, deletion=0.3, above_floor=True, edges=edges)
    said = flat(trust.strip(known))
    assert ("edges +0.10" in said) == bool(edges) and said.count('"gauge"') == 3
