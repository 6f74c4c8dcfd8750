"""One suite for every engine: whatever runs the core, the seam behaves the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_rig import KINDS, LEAVE, NAN, RAISE, SHAPE, SLOW, TRAIN

from fanlight.artifact import Artifact
from fanlight.engine.base import TRUST
from fanlight.errors import FanlightError


def values(rig: Any, event: Any) -> np.ndarray[Any, Any]:
    """The numbers of the first artifact of a finished job."""
    assert event.kind == "done", event.data
    return Artifact.from_bytes(rig.blobs.get(event.data["artifacts"][0]["digest"])).arrays["value"]


def test_events_come_in_order_and_end_once(rig: Any) -> None:
    events = rig.run(rig.events(rig.work(explainer="occlusion", params={"window": 8, "stride": 8})))
    kinds = [e.kind for e in events]
    assert kinds[0] == "started" and kinds[-1] == "done"
    assert kinds.count("started") == kinds.count("predicted") == 1 and [e.last for e in events].count(True) == 1
    done = [e.data["done"] for e in events if e.kind == "progress"]
    assert done == sorted(done) and 0 <= done[0] and done[-1] <= 1
    assert kinds.index("predicted") < len(kinds) - 2, "the prediction is there before the explanation"


def test_what_is_done_is_in_the_store(rig: Any) -> None:
    event = rig.last(rig.work())
    for ref in event.data["artifacts"]:
        blob = rig.blobs.get(ref["digest"])
        assert Artifact.from_bytes(blob).check().name == ref["name"]
    assert event.data["summary"] and event.data["target"] == {"class": event.data["prediction"][0]["index"]}
    assert sum(p["probability"] for p in event.data["prediction"]) == pytest.approx(1)
    about = event.data["provenance"]
    assert about["seconds"] > 0 and about["chunk"] == 8 and about["versions"]["torch"]


def test_an_asked_target_is_explained(rig: Any) -> None:
    one, two = rig.last(rig.work(target={"class": 1}), rig.work(target={"minus": [1, 2]}))
    assert one.data["target"] == {"class": 1} and two.data["target"] == {"minus": [1, 2]}
    assert not np.array_equal(values(rig, one), values(rig, two))
    wrong = rig.last(rig.work(target={"class": 3}))
    assert (wrong.kind, wrong.data["code"]) == ("failed", "unknown_target")


def test_equal_requests_give_equal_bytes_and_another_seed_others(rig: Any) -> None:
    def digests(seed: int) -> list[str]:
        event = rig.last(rig.work(explainer="random", seed=seed))
        return [a["digest"] for a in event.data["artifacts"]]

    assert digests(1) == digests(1) != digests(2)


@pytest.mark.parametrize("explainer", ["saliency", "grad-cam", "integrated-gradients", "random"])
def test_an_item_alone_equals_the_item_in_company(rig: Any, explainer: str) -> None:
    alone = values(rig, rig.last(rig.work(rig.picture(1), explainer, seed=5)))
    pictures = [rig.picture(n) for n in range(6)]
    company = rig.last(*(rig.work(p, explainer, seed=5) for p in pictures))
    assert np.abs(values(rig, company[1]) - alone).max() <= 1e-4 * max(1.0, np.abs(alone).max())


def test_many_jobs_at_once_all_end(rig: Any) -> None:
    ends = rig.last(*(rig.work(rig.picture(n), e) for n in range(8) for e in ("saliency", "occlusion", "random")))
    assert [e.kind for e in ends] == ["done"] * 24


def test_a_short_job_does_not_wait_for_a_long_one(rig: Any) -> None:
    async def act() -> list[str]:
        order: list[str] = []

        async def follow(name: str, work: Any) -> None:
            await rig.events(work)
            order.append(name)

        long = asyncio.create_task(follow("long", rig.slow()))
        await asyncio.sleep(0.1)
        await asyncio.gather(long, follow("short", rig.work()))
        return order

    assert rig.run(act()) == ["short", "long"]


def test_cancelling_stops_at_the_next_step(rig: Any) -> None:
    async def act() -> tuple[list[Any], Any]:
        handle = await rig.engine.submit(rig.slow())
        seen = []
        async for event in handle.events():
            seen.append(event)
            if event.kind == "predicted":
                await handle.cancel()
                await handle.cancel()
        return seen, handle

    seen, handle = rig.run(act())
    assert seen[-1].kind == "cancelled" and seen[-1].job == handle.job
    assert max((e.data["done"] for e in seen if e.kind == "progress"), default=0) < 0.9
    rig.run(handle.cancel())  # when it is over it changes nothing
    assert rig.last(rig.work()).kind == "done"


def test_a_job_ends_at_its_deadline(rig: Any) -> None:
    event = rig.last(rig.slow(deadline=0.1))
    assert (event.kind, event.data["code"]) == ("failed", "deadline") and not event.data["retryable"]


def test_trust_is_measured_from_the_stored_artifact(rig: Any) -> None:
    made = rig.last(rig.work())
    stored = {a["name"]: a["digest"] for a in made.data["artifacts"]}
    event = rig.last(rig.work(kind="trust", artifacts=stored, target=made.data["target"], priority=TRUST))
    assert event.kind == "done", event.data
    assert event.data["trust"]["state"] == "succeeded" and event.data["floor"] is not None
    assert Artifact.from_bytes(rig.blobs.get(event.data["trust"]["curves"]["digest"])).kind == "curves"


FAULTS = {
    "raises": (RAISE, "model_failed", "cannot see this"),
    "leaves": (LEAVE, "model_failed", "SystemExit"),
    "nan": (NAN, "not_finite", "not finite"),
    "training mode": (TRAIN, "compute_failed", "training mode"),
    "shape": (SHAPE, "wrong_shape", "shape"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_model_is_a_sentence_and_the_engine_goes_on(rig: Any, fault: str) -> None:
    mood, code, said = FAULTS[fault]
    event = rig.last(rig.work(mood=mood))
    assert (event.kind, event.data["code"], event.data["retryable"]) == ("failed", code, False)
    assert said in event.data["message"]
    assert rig.last(rig.work()).kind == "done"


@pytest.mark.parametrize("fault", ["raises", "nan", "shape"])
def test_of_a_batch_only_the_guilty_fails(rig: Any, fault: str) -> None:
    mood = FAULTS[fault][0]
    ends = rig.last(*(rig.work(rig.picture(n)) for n in range(3)), rig.work(mood=mood), rig.work(rig.picture(9)))
    assert [e.kind for e in ends] == ["done", "done", "done", "failed", "done"]


def test_an_input_that_is_gone_or_damaged_is_a_sentence(rig: Any) -> None:
    gone = rig.last(rig.work("0" * 64))
    assert (gone.kind, gone.data["code"]) == ("failed", "artifact_gone")
    picture = rig.picture(77)
    path = next((rig.folder / "blobs").glob(f"*/*/{picture}"))
    path.write_bytes(path.read_bytes()[:-20])
    damaged = rig.last(rig.work(picture))
    assert (damaged.kind, damaged.data["code"]) == ("failed", "artifact_damaged")
    assert rig.last(rig.work(rig.picture(77))).kind == "done", "put again, it works again"


def test_a_method_or_parameters_that_do_not_exist_fail_the_job_alone(rig: Any) -> None:
    from dataclasses import replace

    for wrong in (replace(rig.work(), explainer="nothing"), replace(rig.work(), params={"window": -1})):
        assert rig.last(wrong).kind == "failed"
    assert rig.last(rig.work()).kind == "done"


def test_a_model_that_changed_on_disk_is_refused(rig: Any) -> None:
    work = rig.work()
    event = rig.last(type(work)(**{**work.json(), "model": {**work.model, "digest": "0" * 64}}))
    assert (event.kind, event.data["code"]) == ("failed", "model_changed")


def test_a_model_is_described(rig: Any) -> None:
    assert rig.model["classes"] == ["one", "two", "three"] and rig.model["size"] == [32, 32]
    assert len(rig.model["digest"]) == 64 and "gradients" in rig.model["capabilities"]


@pytest.mark.parametrize(
    "text", ["def load(:", "raise OSError('x')", "import sys; sys.exit(1)", "load = 3", "def load(): return 3"]
)
def test_a_source_that_does_not_load_is_a_sentence(rig: Any, text: str) -> None:
    path = rig.folder / "broken.py"
    path.write_text(text)
    with pytest.raises(FanlightError) as caught:
        rig.run(rig.engine.describe({"file": str(path)}))
    assert caught.value.code == "bad_model_file" and "broken.py" in caught.value.message
    assert rig.last(rig.work()).kind == "done"


def test_a_source_of_another_kind_is_a_sentence(rig: Any) -> None:
    with pytest.raises(FanlightError, match="a bundle, a file or a model of a library"):
        rig.run(rig.engine.describe({"url": "x"}))


def test_health_says_how_it_is(rig: Any) -> None:
    async def act() -> tuple[Any, Any]:
        handles = [await rig.engine.submit(rig.slow()) for _ in range(3)]
        await asyncio.sleep(0.8)  # a child tells twice a second
        busy = await rig.engine.health()
        for handle in handles:
            await handle.cancel()
        for handle in handles:
            _ = [e async for e in handle.events()]
        await asyncio.sleep(0.6)
        return busy, await rig.engine.health()

    busy, idle = rig.run(act())
    assert busy.ready and idle.ready and busy.device == "cpu"
    assert busy.running + busy.queued == 3 and idle.running + idle.queued == 0
    assert idle.detail["steps"] > 0 and idle.detail["longest_step"] > 0 and idle.detail["throughput"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_draining_takes_nothing_new_and_finishes_what_runs(fresh: Callable[..., Any], kind: str) -> None:
    rig = fresh(kind)

    async def act() -> Any:
        handle = await rig.engine.submit(rig.slow())
        draining = asyncio.create_task(rig.engine.drain())
        await asyncio.sleep(0.05)
        with pytest.raises(FanlightError, match="shutting down"):
            await rig.engine.submit(rig.work())
        events = [e async for e in handle.events()]
        await draining
        return events[-1]

    assert rig.run(act()).kind == "done"


@pytest.mark.parametrize("kind", KINDS)
def test_closing_ends_what_is_open_in_a_way_that_is_worth_another_attempt(fresh: Callable[..., Any], kind: str) -> None:
    rig = fresh(kind)

    async def act() -> Any:
        handle = await rig.engine.submit(rig.slow())
        await asyncio.sleep(0.2)
        await rig.engine.close()
        events = [e async for e in handle.events()]
        with pytest.raises(FanlightError, match="shutting down"):
            await rig.engine.submit(rig.work(mood=SLOW))
        return events[-1]

    event = rig.run(act())
    assert (event.kind, event.data["code"], event.data["retryable"]) == ("failed", "draining", True)
