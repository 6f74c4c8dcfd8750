"""A replica of Ray Serve that holds a local engine, and how a job finds the replica that has its model.

Only bytes of JSON go in and out, so that nothing but JSON-able data and digests can cross, whatever Ray is able to pickle.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from fanlight.engine.base import Engine, Work
from fanlight.engine.handles import QueueHandle
from fanlight.engine.local import ProcessEngine, ThreadEngine
from fanlight.errors import FanlightError


@dataclass(frozen=True)
class Hosted:
    """What a replica runs; JSON-able. Args: config: of `execute.Config`; isolate, step_timeout: as for a local engine."""

    config: Mapping[str, Any]
    isolate: bool = True
    step_timeout: float = 120

    def engine(self) -> Engine:
        if self.isolate:
            return ProcessEngine(self.config, step_timeout=self.step_timeout)
        from fanlight.engine.execute import Config, Execution

        config = Config(**{**self.config, "explainers": tuple(self.config["explainers"])})
        return ThreadEngine(lambda: Execution(config))


class Replica:
    """The actor. Its methods take the model's digest, which only the router reads, and JSON; they answer with messages (`_message`)."""

    async def __init__(self, hosted: Mapping[str, Any]):  # type: ignore[misc]
        self._engine = Hosted(**hosted).engine()
        self._numbers = itertools.count()
        self._name = f"{os.uname().nodename}:{os.getpid()}"
        await self._engine.start()

    async def work(self, _model: str, said: bytes) -> AsyncIterator[bytes]:
        """Does a piece of work; messages carry its events. Closed before the last one, the work is cancelled."""
        work = Work.of(orjson.loads(said))
        # Another attempt at a job may come while the one before is still being cancelled.
        work = replace(work, job=f"{work.job} {next(self._numbers)}")
        try:
            handle = await self._engine.submit(work)
        except FanlightError as e:
            yield await self._message(error=e.body()["error"], status=e.status)
            return
        assert isinstance(handle, QueueHandle)
        try:
            async for events in handle.batches():
                yield await self._message(events=[(e.kind, e.data) for e in events])
        finally:
            await handle.cancel()  # nothing, where it is over

    async def describe(self, _model: str, said: bytes) -> bytes:
        return await self._answer(self._engine.describe(orjson.loads(said)))

    async def edit(self, _model: str, said: bytes) -> bytes:
        return await self._answer(self._engine.edit(Work.of(orjson.loads(said))))

    async def check_health(self) -> None:
        """Of Ray Serve, which replaces a replica whose engine has given up."""
        health = await self._engine.health()
        broken = getattr(self._engine, "broken", "")
        if not health.ready and broken:
            raise RuntimeError(broken)

    async def _answer(self, coming: Any) -> bytes:
        try:
            return await self._message(value=await coming)
        except FanlightError as e:
            return await self._message(error=e.body()["error"], status=e.status)

    async def _message(self, **content: Any) -> bytes:
        """`content` with who says it and how it is."""
        health = await self._engine.health()
        about = {"replica": self._name, "device": health.device, "health": health.detail}
        return orjson.dumps({**about, **content}, option=orjson.OPT_SERIALIZE_NUMPY)


class Affinity(RequestRouter):  # type: ignore[misc]
    """Sends the jobs of one model to the same few replicas: rendezvous hashing with bounded load.

    Every model has an order of the replicas of its own, by hash; a job goes to the first that has fewer than `bound` calls, or
    else to the one with the fewest. Nothing has to be known of what is loaded where, all servers agree without talking to each other, and
    of n replicas one more moves only the n-th part of the models.
    """

    def initialize_state(self, *, bound: int = 16) -> None:
        self.bound = bound

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True
        by_id = {str(r.replica_id): r for r in candidate_replicas}
        busy = {name: self.replica_queue_len_cache.get(r.replica_id) or 0 for name, r in by_id.items()}
        first = preferred(str(pending_request.args[0]), busy, self.bound)
        return [[by_id[first]] if first else [], candidate_replicas]


def order(model: str, replicas: Iterable[str]) -> list[str]:
    """The replicas in the order in which `model` prefers them."""
    return sorted(replicas, key=lambda r: hashlib.sha256(f"{model} {r}".encode()).digest())


def preferred(model: str, busy: Mapping[str, int], bound: int) -> str | None:
    """The first replica in the model's order with room; None where all have `bound` calls or more. Args: busy: calls by replica."""
    return next((r for r in order(model, busy) if busy[r] < bound), None)
