"""The panel that takes prototypes out for good: what it says of a job and of what came of it."""

from __future__ import annotations

import json
from typing import Any

from fanlight import wire
from fanlight_ui import derive_panel


def flat(component: Any) -> str:
    return json.dumps(
        component, default=lambda v: v.to_plotly_json() if hasattr(v, "to_plotly_json") else str(v), ensure_ascii=False
    )


def job(state: str, **more: Any) -> wire.Derivation:
    base = {"id": "d1", "model": "m", "model_name": "M", "change": {"remove": [3]}, "dataset": "d", "progress": 0.25}
    return wire.Derivation.model_validate(
        {**base, "state": state, "message": "6 of 24 pictures", "mine": True, "created": 0, **more}
    )


EFFECT = {
    "labelled": 40,
    "before": {"count": 30, "n": 40, "value": 0.75, "lo": 0.6, "hi": 0.86},
    "after": {"count": 29, "n": 40, "value": 0.725, "lo": 0.57, "hi": 0.84},
    "zeroed": {"count": 20, "n": 40, "value": 0.5, "lo": 0.35, "hi": 0.65},
    "difference": {"n": 40, "value": -0.025, "lo": -0.1, "hi": 0.05},
    "corrected": 0,
    "spoiled": 1,
    "moved": 1,
}


def test_a_job_says_where_it_is() -> None:
    assert "waiting for its turn" in flat(derive_panel.shown(job("queued")))
    running = flat(derive_panel.shown(job("running")))
    assert "6 of 24 pictures" in running and '"value": "0.25"' in running


def test_what_came_of_it_has_the_new_model_and_its_numbers() -> None:
    text = flat(
        derive_panel.shown(job("done", effect=EFFECT, result="m-without-3", result_name="M, without prototype 3"))
    )
    assert "/models/m-without-3" in text and "M, without prototype 3" in text
    assert "75.0 % of 40 labelled pictures before, 72.5 % after" in text
    assert "−2.5 points, 95 % interval −10.0 to +5.0" in text and "without the repair 50.0 %" in text
    assert "1 prediction changed" in text


def test_of_a_further_class_its_own_pictures_are_told_apart() -> None:
    further = {"count": 9, "n": 10, "value": 0.9, "lo": 0.6, "hi": 0.98}
    done = job("done", effect={**EFFECT, "zeroed": None, "further": further}, result="m2", result_name="M, with yak")
    text = flat(derive_panel.shown(done))
    assert "Of the new class 90.0 % of 10 are right." in text and "without the repair" not in text
    made = flat(derive_panel.before([done, job("running", change={"forget": [4, 5]})]))
    assert "Made of it: 2" in made and "/models/m2" in made and "prototypes 4, 5 anew" in made
    assert derive_panel.before([]) is None


def test_the_page_of_a_model_offers_its_data_sets() -> None:
    data = wire.Dataset(id="birds", name="Birds", version=1, digest="d", count=1200)
    model = wire.Model(
        id="m", name="M", task="prototype-classifier", digest="d", size=(8, 8), capabilities=[], explainers=[]
    )
    text = flat(derive_panel.teaching(model, [data], [job("queued")]))
    assert "Birds · 1,200" in text and "Made of it: 1" in text and "without prototypes 3" in text


def test_what_failed_says_why() -> None:
    assert "There is no prototype 9" in flat(derive_panel.shown(job("failed", problem="There is no prototype 9.")))
    assert "cancelled" in flat(derive_panel.shown(job("cancelled")))
