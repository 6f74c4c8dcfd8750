"""Sixteen people at once: gradient maps per second through the server, next to the same explainer without one."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from fanlight.bench import _api, _pictures
from fanlight.bench._offline import Offline, Rate, fastest
from fanlight.bench._processes import cpu_seconds, tree
from fanlight.bench._server import Server
from fanlight.errors import FanlightError

CLIENTS = 16
WARM = 2.0  # seconds at the start of a round that are not counted
LOOK = 0.5  # seconds between two looks at the worker, which reports itself as often


@dataclass
class Held:
    """A round of held load.

    Args:
        rate: maps per second.
        cpu: milliseconds of processor time per map, of the server, of its worker and of the clients.
        fill: maps that the worker had begun and not finished, on average: how full its batches were.
    """

    rate: float
    cpu: dict[str, float]
    fill: float


@dataclass
class Compared:
    """Rounds of one case, side by side."""

    served: list[Held] = field(default_factory=list)
    offline: list[Rate] = field(default_factory=list)
    size: int = 0
    sizes: dict[int, float] = field(default_factory=dict)

    @property
    def remark(self) -> str:
        tried = ", ".join(f"{size}: {rate:.1f}" for size, rate in self.sizes.items())
        return f"Offline with {self.size} pictures per pass, the fastest of (maps per second) {tried}."


def compare(server: Server, offline: Offline, rounds: int, seconds: float) -> dict[str, Compared]:
    """Two cases, server and offline in turn: `seeds`, other seeds for pictures that are known, so that a map costs its gradient
    alone; and `new`, pictures never seen, so that decoding, preparation and prediction are part of it on both sides."""
    with _api.client(server) as http:
        known = [_api.upload(http, p) for p in itertools.islice(_pictures.photographs(seed=5), CLIENTS)]
        for picture in known:
            _api.timed(http, "POST", "/explanations", 200, params={"wait": 30}, json=_api.request(picture))
        seeds = ({"input": p, "seed": n} for n in itertools.count(1) for p in known)
        fresh = _pictures.photographs(seed=6)
        found = {"seeds": Compared(), "new": Compared()}
        measures = {"seeds": offline.from_items, "new": offline.from_blobs}
        for name, case in found.items():
            case.size, case.sizes = fastest(measures[name], min(2.0, seconds))
        for _ in range(rounds):
            for name, case in found.items():
                bodies: Iterator[dict[str, Any]] = seeds
                if name == "new":  # sent beforehand: what an upload costs is not what is compared
                    count = int(1.5 * case.sizes[case.size] * (WARM + seconds)) + 2 * CLIENTS
                    bodies = iter([{"input": _api.upload(http, p)} for p in itertools.islice(fresh, count)])
                case.served.append(asyncio.run(hold(server, bodies, seconds)))
                _api.until_quiet(http)
                case.offline.append(measures[name](case.size, seconds))
    return found


async def hold(server: Server, bodies: Iterator[dict[str, Any]], seconds: float) -> Held:
    """CLIENTS that each ask for the next map when they have got theirs, for `seconds` after the warm-up."""
    finished: list[float] = []
    fill: list[float] = []
    end = time.perf_counter() + WARM + seconds
    limits = httpx.Limits(max_connections=CLIENTS + 1, max_keepalive_connections=CLIENTS + 1)
    async with httpx.AsyncClient(
        base_url=server.url, headers=server.headers, timeout=120, trust_env=False, limits=limits
    ) as http:

        async def ask() -> None:
            while time.perf_counter() < end:
                more = next(bodies, None)
                if more is None:
                    raise FanlightError("The pictures were used up before the round was over.", code="too_fast")
                body = _api.request(more.pop("input"), **more)
                answer = await http.post(f"{_api.BASE}/explanations", params={"wait": 30}, json=body)
                _api.check(answer, 200)
                finished.append(time.perf_counter())

        async def look() -> None:
            while time.perf_counter() < end:
                await asyncio.sleep(LOOK)
                fill.append(gauge((await http.get("/metrics")).text, "fanlight_engine_running"))

        work = asyncio.gather(*(ask() for _ in range(CLIENTS)), look())
        await asyncio.sleep(WARM)
        before, at = _cpu(server), time.perf_counter()
        await asyncio.sleep(end - at)
        after, until = _cpu(server), time.perf_counter()
        await work
    counted = sum(at < t <= until for t in finished)
    cpu = {name: 1000 * (after[name] - before[name]) / max(counted, 1) for name in after}
    steady = fill[int(WARM / LOOK) :]
    return Held(counted / (until - at), cpu, sum(steady) / max(len(steady), 1))


def gauge(text: str, name: str) -> float:
    """A value from Prometheus text."""
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


def _cpu(server: Server) -> dict[str, float]:
    """Processor seconds so far: the server itself, its worker, and this process, which is the clients."""
    own, *worker = tree(server.pid)
    return {"server": cpu_seconds(own), "worker": sum(map(cpu_seconds, worker)), "clients": time.process_time()}
