"""Words in the compute core: memory that runs out halves the passes and changes no number, and a cancel is heard at the next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fanlight import bundles
from fanlight.adapters import loader
from fanlight.artifact import Artifact, canonical
from fanlight.blobs import Blobs
from fanlight.engine.base import Event, Work
from fanlight.engine.core import Core
from fanlight.engine.execute import Config, Execution
from fanlight.engine.memory import CPU_CHUNK
from fanlight.explainers.diffusion.diffusion_pid import DiffusionPID

SHAPE = (3, 16, 16)
PARAMS = {"nodes": "32", "steps": 4, "all_pairs": False}


class Device(TorchDispatchMode):
    """On which a batch of more latents than `rows` does not fit."""

    def __init__(self, rows: int):
        super().__init__()
        self.rows, self.failed = rows, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.ndim == 4 and tuple(out.shape[1:]) == SHAPE and len(out) > self.rows:
            self.failed += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return out


class On(Execution):
    """An execution on such a device."""

    device_double: Device | None = None

    def run(self, works: Any) -> Any:
        steps = super().run(works)
        while True:
            try:
                if self.device_double is None:
                    step = next(steps)
                else:
                    with self.device_double:
                        step = next(steps)
            except StopIteration as e:
                return e.value
            yield step


@pytest.fixture
def execution(tmp_path: Path) -> On:
    return On(Config(artifacts=str(tmp_path / "blobs"), device="cpu", threads=1), Blobs(str(tmp_path / "blobs")))


def work(execution: On, job: str = "j", seed: int = 0, **params: Any) -> Work:
    place = next(p for p in bundles.shipped() if p.name == "scenes-exact")
    source = {"bundle": str(place)}
    said = {"kind": "prompt", "text": "a red circle left of a blue cross", "picture": None, "pixels": None}
    made = loader.load(source)
    return Work(
        job=job, attempt=1, kind="explain", model={"id": "scenes", "digest": made.digest, "source": source, "size": [16, 16]},
        input=execution.blobs.put(canonical(said)), explainer="diffusion-pid", version=DiffusionPID.version,
        params=DiffusionPID.Params(**{**PARAMS, **params}).model_dump(mode="json"), target={"drawn": True}, seed=seed, numerics="float32",
    )  # fmt: skip


def done(execution: On, asked: Work) -> Event:
    events: list[Event] = []
    core = Core(execution, events.append)
    core.submit(asked)
    while core.turn(block=False):
        pass
    assert events[-1].last and [e.last for e in events].count(True) == 1
    return events[-1]


def arrays(execution: On, event: Event) -> dict[str, Any]:
    assert event.kind == "done", event.data
    return dict(Artifact.from_bytes(execution.blobs.get(event.data["artifacts"][0]["digest"])).arrays)


@pytest.mark.parametrize(("rows", "halvings"), [(4, 1), (2, 2), (1, 3)])
def test_memory_that_runs_out_halves_the_passes_and_changes_no_number(execution: On, rows: int, halvings: int) -> None:
    assert CPU_CHUNK == 8
    whole = arrays(execution, done(execution, work(execution)))
    execution.kept.clear()
    execution.device_double = Device(rows)
    small = arrays(execution, done(execution, work(execution)))
    assert execution.device_double.failed == halvings, "once for each size that does not fit, and never again"
    for name, values in whole.items():
        scale = float(np.abs(values).max(initial=0)) or 1.0
        np.testing.assert_allclose(small[name], values, rtol=1e-4, atol=1e-4 * scale, err_msg=name)


def test_where_not_even_one_row_fits_it_is_a_sentence_and_the_next_job_is_served(execution: On) -> None:
    execution.device_double = Device(0)
    failed = done(execution, work(execution))
    assert failed.kind == "failed" and failed.data["code"] == "out_of_memory" and not failed.data["retryable"]
    assert "smallest chunks" in failed.data["message"]
    execution.device_double = None
    assert done(execution, work(execution)).kind == "done"


@pytest.mark.parametrize("at", [3, 12])
def test_a_cancel_is_heard_at_the_next_step_while_it_draws_and_while_it_measures(execution: On, at: int) -> None:
    events: list[Event] = []
    core = Core(execution, events.append)
    asked = work(execution)
    core.submit(asked)
    while sum(e.kind == "progress" for e in events) < at:
        assert core.turn(block=False)
    said = [e.data["message"] for e in events if e.kind == "progress"][-1]
    assert ("drawing" in said) == (at == 3), said
    model = execution.models.get(asked.model["digest"])
    before = model.asked
    core.cancel(asked.job)
    core.turn(block=False)
    assert events[-1].kind == "cancelled" and model.asked == before, "no further picture was asked about"
    assert not core.active and not core.waiting
    again = done(execution, work(execution, job="again"))
    assert again.kind == "done", "a job that was cancelled leaves nothing behind that hurts"
