"""Memory that runs out at every allocation, and after any number of rows: a double of the allocator on the CPU."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine_rig import Rig
from torch.utils._python_dispatch import TorchDispatchMode

from fanlight.artifact import Artifact
from fanlight.engine.core import BATCH_COST, Core
from fanlight.engine.execute import Config, Execution
from fanlight.engine.memory import CPU_CHUNK, POISON, Memory, budget, full, knee, poisoned
from fanlight.engine.reuse import Reuse
from fanlight.errors import ComputeFailed


class Allocator(TorchDispatchMode):
    """Fails the n-th operation that makes a tensor, once; or every one whose result is more than `rows` pictures or maps."""

    def __init__(self, at: int = 0, rows: int = 0):
        super().__init__()
        self.at, self.rows, self.count, self.failed = at, rows, 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.count += 1
            if self.count == self.at or (
                self.rows and out.ndim == 4 and out.shape[-1] > 3 and out.shape[0] > self.rows
            ):
                self.failed += 1
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return out


class Faulty(Execution):
    """On a device with such an allocator."""

    allocator = Allocator()

    def run(self, works: Any) -> Any:
        steps = super().run(works)
        while True:
            with self.allocator:
                try:
                    step = next(steps)
                except StopIteration as e:
                    return e.value
            yield step


@dataclass
class Told:
    """A core with a faulty device, and what it said of each job."""

    rig: Rig
    execution: Faulty

    def __call__(self, works: list[Any]) -> dict[str, list[Any]]:
        events: dict[str, list[Any]] = {w.job: [] for w in works}
        core = Core(self.execution, lambda e: events[e.job].append(e))
        for w in works:
            core.submit(w)
        while core.turn(block=False):
            pass
        return events

    def values(self, event: Any) -> Any:
        assert event.kind == "done", event.data
        return Artifact.from_bytes(self.rig.blobs.get(event.data["artifacts"][0]["digest"])).arrays["value"]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    rig = Rig("inline", tmp_path).start()
    yield Told(rig, Faulty(Config(artifacts=str(tmp_path / "blobs"), device="cpu", threads=1), rig.blobs))
    rig.stop()


def fresh(told: Told, explainer: str) -> list[Any]:
    told.execution.kept.clear()
    return [told.rig.work(told.rig.picture(n), explainer) for n in range(3)]


@pytest.mark.parametrize("explainer", ["saliency", "grad-cam"])
def test_memory_that_runs_out_once_at_any_allocation_costs_nobody_a_result(told: Told, explainer: str) -> None:
    told.execution.allocator = Allocator()
    expected = [told.values(e[-1]) for e in told(fresh(told, explainer)).values()]
    at = failed = 0
    while True:
        at += 1
        told.execution.allocator = Allocator(at)
        works = fresh(told, explainer)
        events = told(works)
        for work, wanted in zip(works, expected, strict=True):
            assert [e.last for e in events[work.job]].count(True) == 1
            np.testing.assert_allclose(told.values(events[work.job][-1]), wanted, rtol=1e-4, atol=1e-6)
        if not told.execution.allocator.failed:
            break
        failed += 1
    assert failed > 20, "otherwise this has tried nothing"


def test_what_fits_is_learned_and_not_exceeded_again(told: Told) -> None:
    told.execution.allocator = Allocator(rows=2)
    first = told([told.rig.work(told.rig.picture(n)) for n in range(8)])
    assert [e[-1].data.get("message") for e in first.values() if e[-1].kind != "done"] == []
    assert told.execution.allocator.failed > 0
    learned = told.execution.allocator.failed
    again = told([told.rig.work(told.rig.picture(n), seed=1) for n in range(20, 28)])
    assert all(e[-1].kind == "done" for e in again.values())
    assert told.execution.allocator.failed == learned, "a batch of a size that did not fit was made again"


def test_one_job_that_never_fits_fails_with_a_sentence_and_leaves_no_trace(told: Told) -> None:
    told.execution.allocator = Allocator(rows=0)
    small = told([told.rig.work(explainer="occlusion", params={"window": 8, "stride": 8})])
    chunk = next(iter(small.values()))[-1].data["provenance"]["chunk"]

    class Full(Allocator):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    told.execution.allocator = Full()
    events = next(iter(told([told.rig.work(told.rig.picture(5), "occlusion")]).values()))
    assert (events[-1].data["code"], events[-1].data["retryable"]) == ("out_of_memory", False)
    told.execution.allocator = Allocator()
    after = next(iter(told([told.rig.work(told.rig.picture(5), "occlusion")]).values()))[-1]
    assert after.data["provenance"]["chunk"] == chunk == CPU_CHUNK


def test_the_tensors_of_a_failed_step_are_gone_before_it_is_tried_again(told: Told) -> None:
    seen: list[bool] = []
    watched: list[weakref.ref[Any]] = []

    class Watching(Allocator):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.ndim == 4 and not watched:
                watched.append(weakref.ref(out))
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return out

    split = told.execution.split

    def look(work: Any, cost: int) -> None:
        gc.disable()
        seen.append(watched[0]() is None)
        gc.enable()
        split(work, cost)

    told.execution.split = look  # type: ignore[method-assign]
    told.execution.allocator = Watching()
    events = told([told.rig.work(told.rig.picture(n)) for n in range(2)])
    assert seen == [True] and all(e[-1].kind == "done" for e in events.values())


# --- residency


@dataclass
class Double:
    """An allocator with `size` bytes."""

    size: int = 1000
    used: int = 0
    emptied: int = 0

    def allocated(self) -> int:
        return self.used

    def free(self) -> int:
        return self.size - self.used

    def empty(self) -> None:
        self.emptied += 1

    def alive(self) -> bool:
        return True


def loads(double: Double, size: int) -> Callable[[], Any]:
    def load() -> object:
        double.used += size
        return object()

    return load


def test_models_stay_within_the_budget_by_what_they_really_take() -> None:
    double = Double()
    memory = Memory(double, Reuse(budget(double, 0, 7)), Reuse(100))
    assert memory.models.budget == 500 and budget(double, 300, 7) == 300
    for name in ("a", "b"):
        memory.resident(name, loads(double, 200))
    assert memory.models.used == 400 and memory.models.names() == ["a", "b"]
    kept = memory.resident("a", loads(double, 10**9))
    assert memory.resident("a", loads(double, 10**9)) is kept, "it is there"
    memory.resident("c", loads(double, 200))
    assert memory.models.names() == ["a", "c"] and double.emptied == 1, "the least recently used one went"


def test_relief_goes_from_others_to_smaller_passes_and_says_when_nothing_is_left() -> None:
    double = Double()
    memory = Memory(double, Reuse(500), Reuse(100))
    for name in ("a", "b"):
        memory.resident(name, loads(double, 100))
    assert memory.chunk("a", "occlusion", lambda: 4) == 4
    assert memory.relieve("a", "occlusion", 1) and memory.models.names() == ["a"]
    assert memory.chunk("a", "occlusion", lambda: 4) == 4
    assert memory.relieve("a", "occlusion", 2) and memory.chunk("a", "occlusion", lambda: 4) == 2
    assert memory.chunk("a", "saliency", lambda: 4) == 4, "learned per method"
    assert memory.relieve("a", "occlusion", 3) and memory.chunk("a", "occlusion", lambda: 4) == 1
    assert not memory.relieve("a", "occlusion", 4)
    assert memory.most("a", "occlusion") == BATCH_COST
    memory.split("a", "occlusion", 12)
    assert memory.most("a", "occlusion") == 6 and memory.most("b", "occlusion") == BATCH_COST


def test_the_knee_is_below_what_does_not_fit() -> None:
    emptied: list[bool] = []

    def ask(rows: int) -> None:
        if rows > 16:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    assert knee(ask, lambda: emptied.append(True)) <= 16
    with pytest.raises(RuntimeError, match="else"):
        knee(lambda rows: (_ for _ in ()).throw(RuntimeError("something else")), lambda: None)


# --- telling failures apart


def test_memory_is_recognised_inside_of_what_was_made_of_it() -> None:
    try:
        try:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        except RuntimeError as e:
            raise ComputeFailed("The model cannot be loaded.") from e
    except ComputeFailed as wrapped:
        assert full(wrapped)
    assert full(RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")) and full(MemoryError())
    assert not full(RuntimeError("shapes differ"))


@pytest.mark.parametrize("words", POISON)
def test_errors_that_cost_the_context_are_told_from_others(words: str) -> None:
    double = Double()
    assert poisoned(RuntimeError(f"CUDA error: {words} was encountered"), double)
    assert not poisoned(RuntimeError("CUDA error: invalid configuration argument"), double)
    assert not poisoned(ValueError(words), double), "a sentence of somebody's own"


def test_a_device_that_does_nothing_more_is_lost_whatever_the_error_says() -> None:
    class Dead(Double):
        def alive(self) -> bool:
            return False

    assert poisoned(RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), Dead())
