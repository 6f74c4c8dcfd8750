"""Further checks through the seam, in every engine."""

from __future__ import annotations

from typing import Any

import pytest

from fanlight.artifact import Artifact
from fanlight.engine.base import TRUST, Event
from fanlight.quality.checks import MEASURES


def check(rig: Any, measure: str, **fields: Any) -> list[Event]:
    made = rig.last(rig.work(rig.picture(1)))
    stored = {a["name"]: a["digest"] for a in made.data["artifacts"]}
    work = rig.work(
        rig.picture(1),
        kind="check",
        measure=measure,
        artifacts=stored,
        target=made.data["target"],
        priority=TRUST,
        **fields,
    )
    return list(rig.run(rig.events(work)))


@pytest.mark.parametrize("measure", MEASURES)
def test_a_check_is_made_from_the_stored_artifact_with_progress(rig: Any, measure: str) -> None:
    events = check(rig, measure)
    done = events[-1]
    assert done.kind == "done", done.data
    assert done.data["measure"] == measure and done.data["check"]["state"] == "succeeded", done.data["check"]
    told = [e.data["done"] for e in events if e.kind == "progress"]
    assert len(told) > 2 and told == sorted(told) and told[-1] <= 1
    if curves := done.data["check"]["curves"]:
        assert Artifact.from_bytes(rig.blobs.get(curves["digest"])).kind == "curves"
    assert done.data["provenance"]["forwards"] > 0


def test_the_model_answers_as_before_after_its_copy_forgot_everything(rig: Any) -> None:
    before = rig.last(rig.work(rig.picture(2))).data["prediction"]
    assert check(rig, "randomisation")[-1].data["check"]["state"] == "succeeded"
    assert rig.last(rig.work(rig.picture(2))).data["prediction"] == before


def test_the_same_check_gives_the_same_numbers(rig: Any) -> None:
    first, second = (check(rig, "randomisation")[-1].data["check"] for _ in range(2))
    assert first == second
