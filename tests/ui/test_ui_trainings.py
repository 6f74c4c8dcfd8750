"""Trainings under Jobs: words, bar and bars of a figure."""

from __future__ import annotations

import json
from typing import Any

from fanlight.wire import Training
from fanlight_ui import trainings


def flat(component: Any) -> str:
    return json.dumps(component, default=lambda v: v.to_plotly_json(), ensure_ascii=False).replace("\u202f", " ")


def told(state: str, losses: list[float], **changes: Any) -> Training:
    steps = [
        {"at": 100.0 + n, "stage": "joint", "done": n + 1, "of": 10, "figures": {"loss": v}}
        for n, v in enumerate(losses)
    ]
    base = {"id": "b", "title": "Birds", "state": state, "began": 100, "updated": 130, "steps": steps}
    return Training.model_validate(base | changes)


def test_one_that_runs_says_how_far_it_is_and_how_long_it_takes() -> None:
    said = flat(trainings.row(told("running", [2.0, 1.0], seconds_left=90), 131))
    assert "joint: 2 of 10 epochs · about 2 min left" in said
    assert '"value": "0.2"' in said and "loss: 2.00 at first, 1.00 now" in said


def test_one_that_is_quiet_says_what_to_do_and_one_that_is_done_has_no_bar() -> None:
    assert "goes on from its checkpoint" in trainings.words(told("quiet", [1.0]), 1000)
    done = flat(trainings.row(told("done", [1.0]), 131))
    assert "Progress" not in done and "done in" in done


def test_the_bars_go_from_the_least_to_the_greatest_and_end_with_the_last() -> None:
    losses = [float(n) for n in range(200)]
    (words, spark) = trainings.curve("loss", told("running", losses).steps).children  # type: ignore[misc]
    heights = [b.style["height"] for b in spark.children]
    assert len(heights) <= trainings.BARS and heights[-1] == "100%" and "199 now" in words.children
    flat_line = trainings.curve("loss", told("running", [3.0, 3.0]).steps)
    assert [b.style["height"] for b in flat_line.children[1].children] == ["8%", "8%"]


def test_none_is_nothing() -> None:
    assert trainings.section([]) == []
    assert "begun" in trainings.words(told("running", []), 131)
