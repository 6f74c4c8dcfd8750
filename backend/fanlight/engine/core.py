"""The compute core: one queue, one device, one step at a time. The same object runs in a call, a thread, a child process or a replica.

- Nothing waits for a batch to fill: an idle core starts at once, and what queues meanwhile is batched by equal key up to a cost.
- Long work yields at every step. Between steps the most urgent work goes on: lower priority number first, then what has least left to do per job;
  whoever has waited long is promoted, so nothing starves. So a gradient map asked for during an occlusion does not wait for it.
- Out of memory splits a batch in halves; an error in a batch is found by running its items alone, and only the guilty one fails.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fanlight.engine.base import TRUST, Event, Work
from fanlight.errors import ComputeFailed, FanlightError

AGEING = 5.0  # seconds without service after which work counts as one priority class more urgent
QUIET = 1.0  # seconds without other work before trust goes on: its steps never delay somebody who is at work
ACTIVE = 4  # suspended runs per priority class: bounds the memory that they hold
BATCH_COST = 16  # forward passes in one batch: above the throughput knee of small models on a CPU nothing is gained


@dataclass(frozen=True)
class Plan:
    """How a piece of work may be batched: only with equal `key`; `cost` in forward passes."""

    key: Hashable
    cost: int


@dataclass(frozen=True)
class Progress:
    """One step of a batch: the fraction done, and events for single items (by index)."""

    done: float
    message: str = ""
    previews: Sequence[str] | None = None
    """For each item a picture of what is known so far: a small PNG as a data URI."""
    events: Sequence[tuple[int, str, Mapping[str, Any]]] = ()
    quiet: bool = False
    """True for a step of preparation that nobody needs to hear of."""


Outcome = Mapping[str, Any] | FanlightError


class Executor(Protocol):
    """What the core drives; it owns the device."""

    def plan(self, work: Work) -> Plan: ...

    def run(self, works: Sequence[Work]) -> Generator[Progress, None, list[Outcome]]:
        """Yields steps, returns for each work the data of its `done` event or its error."""
        ...

    def out_of_memory(self, error: BaseException) -> bool: ...

    def poisoned(self, error: BaseException) -> bool:
        """Whether nothing can be done on the device any more by this process."""
        ...

    def most(self, work: Work) -> int:
        """Largest cost of a batch of such work."""
        ...

    def split(self, work: Work, cost: int) -> None:
        """Frees what can be freed and remembers that a batch of this cost of such work does not fit."""
        ...

    def relieve(self, work: Work, tries: int) -> bool:
        """Makes room for one job that did not fit for the `tries`-th time; False where nothing is left to try."""
        ...

    def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def edit(self, work: Work) -> Mapping[str, Any]:
        """Of `Engine.edit`; from any thread, beside `run`."""
        ...


@dataclass(eq=False)
class Entry:
    work: Work
    plan: Plan
    since: float
    expires: float | None
    limit: int = BATCH_COST
    """Most items in its batch: halved by out-of-memory, 1 after an error in company."""
    over: str | None = None
    """Why nobody waits for it: cancelled | expired."""
    tries: int = 0
    """How often it ran out of memory alone."""


@dataclass(eq=False)
class Batch:
    entries: list[Entry]
    steps: Generator[Progress, None, list[Outcome]]
    served: float
    done: float = 0.0

    @property
    def left(self) -> float:
        """Forward passes that are left, per job: what a batch has to do is shared by all who wait for it (Smith's rule), so that
        one more of its kind waits for it instead of breaking it off and running alone."""
        return sum(e.plan.cost for e in self.entries) * (1 - self.done) / len(self.entries)

    @property
    def priority(self) -> int:
        return min(e.work.priority for e in self.entries)


@dataclass
class Core:
    """Args: executor: does the work; emit: called with every event, in order per job, from the thread that runs the core."""

    executor: Executor
    emit: Callable[[Event], None]
    turns: Callable[[Sequence[str]], None] | None = None
    """Called when other jobs than before, or none, get the device: who is to blame if the process dies now."""
    fatal: Callable[[str], None] | None = None
    """Called with the reason when the device is lost to this process: the core does nothing more. None: the process ends the core itself."""
    clock: Callable[[], float] = time.monotonic
    waiting: list[Entry] = field(default_factory=list)
    active: list[Batch] = field(default_factory=list)
    lost: bool = False
    """The device is, to this process."""
    steps: int = 0
    longest_step: float = 0.0
    spent: float = 0.0
    """Seconds in steps, with `finished_cost` the measured throughput."""
    finished_cost: int = 0
    urgent: float = float("-inf")
    """When there was last something to do for somebody who waits."""
    _inbox: queue.SimpleQueue[Callable[[], None] | None] = field(default_factory=queue.SimpleQueue)
    _turn: Sequence[str] = ()

    # --- from any thread

    def submit(self, work: Work) -> None:
        self._inbox.put(lambda: self._add(work))

    def cancel(self, job: str) -> None:
        self._inbox.put(lambda: self._leave(job))

    def describe(self, source: Mapping[str, Any], answer: Callable[[Mapping[str, Any] | FanlightError], None]) -> None:
        """Loads a model between two steps and says what it is."""

        def act() -> None:
            self._give([])
            try:
                answer(self.executor.describe(source))
            except FanlightError as e:
                answer(e)
            except (Exception, SystemExit) as e:
                answer(ComputeFailed(f"The model cannot be loaded: {type(e).__name__}: {e}", code="model_failed"))

        self._inbox.put(act)

    def stop(self) -> None:
        self._inbox.put(None)

    # --- from the thread that owns the device

    def run(self) -> None:
        """Works until stopped."""
        while self.turn(block=True):
            pass

    def turn(self, *, block: bool) -> bool:
        """Takes messages and does one step. False when stopped, or when there is nothing to do now and it may not block."""
        wait = self.rest()
        if self.lost or (wait is not None and not block and self._inbox.empty()):
            return False
        if not self._read(wait if block else 0.0):
            return False
        self._sweep()
        chosen = self._choose()
        if chosen is not None:
            self._advance(chosen)
        return True

    def rest(self) -> float | None:
        """None where there is work to do now; else seconds until there is, infinite when idle."""
        if not self.waiting and not self.active:
            return float("inf")
        quiet = QUIET - (self.clock() - self.urgent)
        return quiet if quiet > 0 and self._only_trust() else None

    def _only_trust(self) -> bool:
        return all(e.work.priority >= TRUST for e in self.waiting) and all(b.priority >= TRUST for b in self.active)

    def _read(self, wait: float | None) -> bool:
        """Acts on every message that is there; waits for the first one up to `wait` seconds. False when told to stop."""
        with contextlib.suppress(queue.Empty):
            while True:
                message = self._inbox.get(block=bool(wait), timeout=None if wait == float("inf") else wait)
                if message is None:
                    return False
                message()
                wait = None
        return True

    def _add(self, work: Work) -> None:
        t = self.clock()
        try:
            plan = self.executor.plan(work)
        except FanlightError as e:
            self._fail(work, e)
            return
        except Exception as e:
            self._fail(work, _foreign(e))
            return
        if work.priority < TRUST:
            self.urgent = t
        # A further attempt may be one after a crash: alone, so that it blames nobody else if it crashes again.
        limit = BATCH_COST if work.attempt <= 1 else 1
        self.waiting.append(Entry(work, plan, t, None if work.deadline is None else t + work.deadline, limit))

    def _leave(self, job: str) -> None:
        for entry in (*self.waiting, *(e for b in self.active for e in b.entries)):
            if entry.work.job == job and entry.over is None:
                entry.over = "cancelled"

    def _sweep(self) -> None:
        """Drops what nobody waits for or what is too late."""
        t = self.clock()
        for entry in (*self.waiting, *(e for b in self.active for e in b.entries)):
            if entry.over is None and entry.expires is not None and t > entry.expires:
                entry.over = "expired"
        for entry in [e for e in self.waiting if e.over]:
            self.waiting.remove(entry)
            self._drop(entry)
        for batch in [b for b in self.active if all(e.over for e in b.entries)]:
            self.active.remove(batch)
            with contextlib.suppress(Exception):  # whatever it says while it is closed, nobody waits for it
                batch.steps.close()
            for entry in batch.entries:
                self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        if entry.over == "expired":
            self._fail(
                entry.work,
                ComputeFailed(
                    "The job was not finished before its deadline.", code="deadline", hint="Ask again, or for less."
                ),
            )
        else:
            self.emit(Event(entry.work.job, "cancelled"))

    def _choose(self) -> Batch | None:
        """The batch to advance; starts a new one where what waits is more urgent than what runs."""
        t = self.clock()

        def urgency(priority: int, since: float, cost: float) -> tuple[float, float]:
            return priority - (t - since) // AGEING, cost

        trusting = t - self.urgent >= QUIET
        running = min(
            (b for b in self.active if trusting or b.priority < TRUST),
            key=lambda b: urgency(b.priority, b.served, b.left),
            default=None,
        )
        full = {p for p in range(8) if sum(b.priority == p for b in self.active) >= ACTIVE}
        ready = [e for e in self.waiting if e.work.priority not in full and (trusting or e.work.priority < TRUST)]
        first = min(ready, key=lambda e: (urgency(e.work.priority, e.since, e.plan.cost), e.since), default=None)
        if first is None:
            return running
        if running is not None:
            if urgency(running.priority, running.served, running.left) <= urgency(
                first.work.priority, first.since, first.plan.cost
            ):
                return running
        return self._start(first)

    def _start(self, first: Entry) -> Batch:
        entries, cost, most = [first], first.plan.cost, self.executor.most(first.work)
        for entry in self.waiting:
            if entry is first or entry.plan.key != first.plan.key:
                continue
            if len(entries) + 1 > min(entry.limit, first.limit) or cost + entry.plan.cost > most:
                break
            entries.append(entry)
            cost += entry.plan.cost
        for entry in entries:
            self.waiting.remove(entry)
            self.emit(Event(entry.work.job, "started"))
        batch = Batch(entries, self.executor.run([e.work for e in entries]), self.clock())
        self.active.append(batch)
        return batch

    def _advance(self, batch: Batch) -> None:
        self._give([e.work.job for e in batch.entries])
        begin = self.clock()
        error: BaseException | None = None
        memory = poisoned = False
        outcomes: list[Outcome] | None = None
        step: Progress | None = None
        try:
            step = next(batch.steps)
        except StopIteration as e:
            outcomes = e.value
        except (Exception, SystemExit) as e:  # somebody's code may call sys.exit()
            memory = self.executor.out_of_memory(e)
            poisoned = not memory and not isinstance(e, FanlightError) and self.executor.poisoned(e)
            # Its traceback pins every tensor of the failed step: it goes before anything is tried again.
            error = e.with_traceback(None)
            error.__context__ = error.__cause__ = None
        batch.served = self.clock()
        if batch.priority < TRUST:
            self.urgent = batch.served
        self.steps += 1
        self.spent += batch.served - begin
        self.longest_step = max(self.longest_step, batch.served - begin)
        if step is not None:
            self._report(batch, step)
        elif outcomes is not None:
            self.active.remove(batch)
            self._finish(batch, outcomes)
        else:
            self.active.remove(batch)
            assert error is not None
            if poisoned and self.fatal is not None:
                self.lost = True
                self.fatal(_foreign(error).message)
            else:
                self._recover(batch.entries, error, memory)

    def _give(self, jobs: Sequence[str]) -> None:
        if self.turns is not None and jobs != self._turn:
            self._turn = jobs
            self.turns(jobs)

    def _report(self, batch: Batch, step: Progress) -> None:
        batch.done = min(max(step.done, batch.done), 1.0)
        for index, kind, data in step.events:
            self.emit(Event(batch.entries[index].work.job, kind, data))  # type: ignore[arg-type]
        for n, entry in enumerate(batch.entries):
            if not entry.over and not step.quiet:
                said = {"done": round(batch.done, 4), "message": step.message}
                if step.previews is not None:
                    said["preview"] = step.previews[n]
                self.emit(Event(entry.work.job, "progress", said))

    def _finish(self, batch: Batch, outcomes: list[Outcome]) -> None:
        for entry, outcome in zip(batch.entries, outcomes, strict=True):
            self.finished_cost += entry.plan.cost
            if entry.over:
                self._drop(entry)
            elif isinstance(outcome, FanlightError):
                self._fail(entry.work, outcome)
            else:
                self.emit(Event(entry.work.job, "done", outcome))

    def _recover(self, entries: list[Entry], error: BaseException, memory: bool) -> None:
        if len(entries) > 1:
            if memory:
                self.executor.split(entries[0].work, sum(e.plan.cost for e in entries))
            for entry in entries:
                entry.limit = max(1, len(entries) // 2) if memory else 1
            self.waiting[:0] = entries
            return
        entries[0].tries += memory
        if memory and self.executor.relieve(entries[0].work, entries[0].tries):
            self.waiting[:0] = entries
        elif memory:
            hint = "Choose smaller parameters or a smaller model, or a device with more memory."
            self._fail(
                entries[0].work,
                ComputeFailed(
                    "The device ran out of memory even in the smallest chunks.", code="out_of_memory", hint=hint
                ),
            )
        else:
            self._fail(entries[0].work, error if isinstance(error, FanlightError) else _foreign(error))

    def _fail(self, work: Work, error: FanlightError) -> None:
        self.emit(Event(work.job, "failed", {**error.body()["error"], "retryable": False}))


def _foreign(error: BaseException) -> ComputeFailed:
    """An exception of somebody's model or method as a sentence; the traceback stays in the log."""
    said = str(error).strip().splitlines()
    detail = f"{type(error).__name__}: {said[0][:300]}" if said else type(error).__name__
    return ComputeFailed(
        f"The model or the method raised an error: {detail}",
        code="model_failed",
        hint="Check the model with: fanlight doctor MODEL",
    )
