"""An executor with a device of our making: it counts, raises, runs out of memory and hangs on request."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanlight.engine.base import Work
from fanlight.engine.core import BATCH_COST, Outcome, Plan, Progress
from fanlight.errors import ComputeFailed


def work(job: str, **params: Any) -> Work:
    """A piece of work. params: steps, cost, key, raises, memory (most items that fit), seconds (per step)."""
    priority = params.pop("priority", 1)
    deadline = params.pop("deadline", None)
    return Work(
        job=job,
        attempt=1,
        kind="explain",
        model={"id": "m", "digest": "d", "source": {}},
        input="i",
        explainer="fake",
        version="1",
        params=params,
        target=None,
        seed=0,
        numerics="f32",
        priority=priority,
        deadline=deadline,
    )


@dataclass
class FakeExecutor:
    device: str = "fake"
    chunk: int = 4
    largest: int = BATCH_COST
    log: list[tuple[str, ...]] = field(default_factory=list)
    """The batches that were begun."""
    steps: list[str] = field(default_factory=list)
    """First job of the batch of each step."""

    def plan(self, work: Work) -> Plan:
        if work.params.get("unplannable"):
            raise ComputeFailed("This cannot be planned.", code="unplannable")
        return Plan(work.params.get("key", work.job), work.params.get("cost", 1))

    def run(self, works: Sequence[Work]) -> Generator[Progress, None, list[Outcome]]:
        self.log.append(tuple(w.job for w in works))
        if len(works) > min(w.params.get("memory", 99) for w in works):
            raise MemoryError
        total = max(w.params.get("steps", 1) for w in works)
        for n in range(total):
            self.steps.append(works[0].job)
            time.sleep(works[0].params.get("seconds", 0))
            yield Progress((n + 1) / total, "working")
        for w in works:
            if w.params.get("raises"):
                raise RuntimeError(str(w.params["raises"]))
            if w.params.get("memory_chunk", 99) < self.chunk:
                raise MemoryError
        return [
            ComputeFailed("no", code="own_fault") if w.params.get("own_fault") else {"artifacts": [w.job]}
            for w in works
        ]

    def out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError)

    def poisoned(self, error: BaseException) -> bool:
        return "assert" in str(error)

    def most(self, work: Work) -> int:
        return self.largest

    def split(self, work: Work, cost: int) -> None:
        self.largest = min(self.largest, cost) // 2

    def relieve(self, work: Work, tries: int) -> bool:
        self.chunk //= 2
        return self.chunk >= 1

    def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        if source.get("broken"):
            raise ComputeFailed("This model does not load.", code="model_failed")
        return {"name": source.get("name", "fake")}
