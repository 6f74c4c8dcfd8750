"""Live edits of results that a method changes itself: answered beside running work, equal to what is saved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_rig import KINDS, SLOW, Rig

from fanlight.artifact import Artifact
from fanlight.errors import FanlightError

DIMMER = '''"""A map that can be dimmed afterwards."""
import numpy as np
from pydantic import Field
from fanlight.artifact import Artifact
from fanlight.errors import InvalidField
from fanlight.explainers.base import Edited, Explainer, Paper, Params as Base, Step

class Params(Base):
    start: float = Field(1.0, ge=0, le=10, description="Value everywhere.")

class Dimmer(Explainer):
    name, title, family = "dimmer", "Dimmer", "attribution"
    summary = reading = misleads = "For tests."
    paper = Paper("Nobody", "https://example.org", "")
    accepts, returns, version = "image-classifier", ("image-map",), "1"
    edits = {"dim": "a factor from 0 to 1"}
    Params = Params

    @classmethod
    def cost(cls, params, size):
        return 1

    @classmethod
    def canonical(cls, edits, about):
        for edit in edits:
            if not 0 <= edit["dim"] <= 1:
                raise InvalidField("A factor lies between 0 and 1.", code="invalid_edit", given=edit["dim"])
        return [{"dim": float(edits[-1]["dim"])}]

    def edit(self, model, artifacts, edits, params):
        factor = edits[-1]["dim"] if edits else 1.0
        if factor == 0.5:
            raise RuntimeError("half is not to be had")
        shown = Artifact("map", "image-map", {"value": artifacts[0].arrays["value"] * np.float32(factor)}, artifacts[0].meta)
        top = [{"index": 1, "name": model.classes[1], "probability": factor, "logit": 0.0, "unit": ""}]
        return Edited([shown], top)

    def suggest(self, model, artifacts, edits, params):
        return {"edit": {"dim": 0.25}, "of": len(edits)}

    def run(self, model, items, params, ctx):
        yield Step(0.5)
        about = {"unit": "logit", "signed": True, "box": [0, 0, 32, 32]}
        value = np.full((32, 32), params.start, np.float32)
        return [[Artifact("map", "image-map", {"value": value}, about)] for _ in items]
'''


@pytest.fixture(scope="module", params=KINDS)
def dimmed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A rig that knows the dimmer, a piece of work for it, and the artifacts that it made."""
    folder: Path = tmp_path_factory.mktemp(f"edits-{request.param}")
    file = folder / "dimmer.py"
    file.write_text(DIMMER)
    options = {"name": "edits"} if request.param == "ray" else {}  # replicas of their own, which know the dimmer
    if options:
        request.getfixturevalue("cluster")
    rig = Rig(request.param, folder, explainers=(str(file),), **options).start()
    work = replace(rig.work(), explainer="dimmer", version="1", params={"start": 1.0})
    made = rig.last(work)
    assert made.kind == "done", made.data
    stored = {a["name"]: a["digest"] for a in made.data["artifacts"]}
    yield rig, work, stored
    rig.stop()


def asked(work: Any, stored: dict[str, str], *edits: dict[str, Any], kind: str = "edit") -> Any:
    return replace(work, kind=kind, input="", artifacts=stored, edits=edits)


def test_an_edit_is_answered_from_what_is_stored(dimmed: Any) -> None:
    rig, work, stored = dimmed
    found = rig.run(rig.engine.edit(asked(work, stored, {"dim": 0.75})))
    assert found["artifact"]["name"] == "map" and found["artifact"]["detail"] == {}
    assert found["prediction"][0]["probability"] == 0.75
    assert rig.run(rig.engine.edit(asked(work, stored, {"dim": 0.75}, kind="suggest"))) == {
        "edit": {"dim": 0.25},
        "of": 1,
    }


def test_what_is_saved_is_what_was_shown_and_replays_to_the_same_bytes(dimmed: Any) -> None:
    rig, work, _ = dimmed
    ends = [rig.last(replace(work, job=f"saved {n}", edits=({"dim": 0.25},))) for n in range(2)]
    assert ends[0].data["artifacts"] == ends[1].data["artifacts"]
    saved = Artifact.from_bytes(rig.blobs.get(ends[0].data["artifacts"][0]["digest"]))
    assert np.all(saved.arrays["value"] == 0.25) and ends[0].data["prediction"][0]["probability"] == 0.25


def test_an_edit_does_not_wait_for_what_runs(dimmed: Any) -> None:
    rig, work, stored = dimmed
    if rig.kind == "inline":
        pytest.skip("the inline engine computes in the event loop itself")
    slow = rig.work(rig.picture(4000, SLOW), "occlusion", params={"window": 4, "stride": 4})

    async def beside() -> float:
        handle = await rig.engine.submit(slow)
        async for event in handle.events():
            if event.kind == "progress":
                break
        began = time.monotonic()
        await rig.engine.edit(asked(work, stored, {"dim": 0.75}))
        took = time.monotonic() - began
        assert len((await rig.engine.health()).detail) and rig.engine._handles, "the slow work is still there"
        await handle.cancel()
        async for _ in handle.events():
            pass
        return took

    assert rig.run(beside()) < 0.5  # the whole of the slow work takes more than a second


def test_an_edit_that_fails_is_a_sentence_and_harms_nothing(dimmed: Any) -> None:
    rig, work, stored = dimmed
    for wrong in (asked(work, stored, {"dim": 0.5}), asked(work, {"map": "0" * 64})):
        with pytest.raises(FanlightError) as caught:
            rig.run(rig.engine.edit(wrong))
        assert "Traceback" not in caught.value.message
    assert rig.run(rig.engine.edit(asked(work, stored)))["prediction"][0]["probability"] == 1.0
