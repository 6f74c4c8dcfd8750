"""Arrivals that wait for nobody: requests are sent when they are due, however late the answers to earlier ones are.

Latency counts from the moment a request was due, so that a server that stalls does not stall its own measurement.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from fanlight.bench._figures import percentile
from fanlight.bench._wire import Answer, NoAnswer

Ask = Callable[[int], Awaitable[Answer]]


@dataclass
class Phase:
    """What came of a stretch of time. Times in milliseconds since a request was due."""

    began: float = field(default_factory=time.monotonic)
    due: int = 0
    answered: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By kind: answers of 200 to 399."""
    refused: list[float] = field(default_factory=list)
    """Answers of 429."""
    dropped: int = 0
    """Live edits that a newer one of the same session overtook (409), as they should."""
    errors: Counter[str] = field(default_factory=Counter)
    when: list[tuple[float, str, float]] = field(default_factory=list)
    """(seconds since the start, kind, milliseconds) of every good answer."""
    unanswered: list[float] = field(default_factory=list)
    """Seconds since the start of every refusal and error."""
    seconds: float = 0.0
    late: list[float] = field(default_factory=list)
    """Milliseconds by which this program itself was late in sending."""

    @property
    def good(self) -> int:
        return sum(map(len, self.answered.values()))

    def p(self, kind: str, q: float) -> float:
        """A percentile of a kind; NaN where nothing of it was answered."""
        return percentile(self.answered[kind], q) if self.answered[kind] else float("nan")


async def arrive(
    asks: Mapping[str, tuple[float, Ask]], rate: float, seconds: float, rng: random.Random, limit: int = 4000
) -> Phase:
    """Poisson arrivals. Args: asks: kind -> (share, request); rate: per second in all; limit: of requests without an answer, beyond which the
    rest of the phase is given up."""
    phase, open_ = Phase(), set[asyncio.Task[None]]()
    kinds, shares = list(asks), [share for share, _ in asks.values()]
    begun, due, number = time.perf_counter(), 0.0, 0
    while (due := due + rng.expovariate(rate)) < seconds and len(open_) < limit:
        await asyncio.sleep(max(0.0, begun + due - time.perf_counter()))
        kind = rng.choices(kinds, shares)[0]
        phase.due += 1
        phase.late.append(1000 * (time.perf_counter() - begun - due))
        task = asyncio.create_task(_one(phase, kind, asks[kind][1], number, begun, due))
        open_.add(task)
        task.add_done_callback(open_.discard)
        number += 1
    phase.seconds = min(due, seconds)
    if len(open_) >= limit:
        phase.errors[f"{limit} requests were without an answer"] += 1
    await asyncio.gather(*open_)
    return phase


async def _one(phase: Phase, kind: str, ask: Ask, number: int, begun: float, due: float) -> None:
    try:
        answer = await ask(number)
    except NoAnswer as e:
        phase.errors[f"{kind}: {e}"] += 1
        phase.unanswered.append(due)
        return
    took = 1000 * (time.perf_counter() - begun - due)
    if answer.status_code < 400:
        phase.answered[kind].append(took)
        phase.when.append((due, kind, took))
    elif answer.status_code == 429:
        phase.refused.append(took)
        phase.unanswered.append(due)
    elif answer.status_code == 409 and kind == "live":
        phase.dropped += 1
    else:
        phase.errors[f"{kind}: {answer.status_code} {answer.text[:120]}"] += 1
        phase.unanswered.append(due)
