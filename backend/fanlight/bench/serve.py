"""Answer times of the server, its throughput under sixteen clients, and the time from the command to the first page.

Starts its own servers with fresh data folders on loopback. Load is made by this process, on the same machine: what the clients
cost is taken from the server.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fanlight.bench import _api, _latency, _start, _throughput
from fanlight.bench._figures import Declared, figures, passed, ratios
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._server import fanlight
from fanlight.cli.output import say

RATES: dict[str, Callable[[str], Declared]] = {
    "ratio": lambda case: Declared(measures=f"{case}: 16 clients, maps per second over offline", at_least=0.9),
    "served": lambda case: Declared(measures=f"{case}: 16 clients through the server", unit="maps/s"),
    "offline": lambda case: Declared(measures=f"{case}: offline in batches", unit="maps/s"),
    "offline_cpu": lambda case: Declared(measures=f"{case}: processor time per map offline", unit="ms"),
    "worker_cpu": lambda case: Declared(measures=f"{case}: processor time per map of the server's worker", unit="ms"),
    "server_cpu": lambda case: Declared(measures=f"{case}: processor time per map of the server itself", unit="ms"),
    "clients_cpu": lambda case: Declared(measures=f"{case}: processor time per map of the clients", unit="ms"),
    "fill": lambda case: Declared(measures=f"{case}: maps that the worker has begun, on average"),
}
FIGURES = {
    "stored_p50": Declared(measures="Stored explanation, GET, median", unit="ms"),
    "stored_p95": Declared(measures="Stored explanation, GET, 95th percentile", unit="ms", at_most=30),
    "stored_busy_p50": Declared(measures="The same while an occlusion runs, median", unit="ms"),
    "stored_busy_p95": Declared(measures="The same while an occlusion runs, 95th percentile", unit="ms"),
    "accepted_p50": Declared(measures="202 while the device is busy, known picture, median", unit="ms"),
    "accepted_p95": Declared(
        measures="202 while the device is busy, known picture, 95th percentile", unit="ms", at_most=50
    ),
    "accepted_new_p50": Declared(measures="202 while the device is busy, new picture and no target, median", unit="ms"),
    "accepted_new_p95": Declared(
        measures="202 while the device is busy, new picture and no target, 95th percentile", unit="ms", at_most=50
    ),
    **{
        f"{case}{where}_{name}": declared(f"{pictures} pictures, {threads}")
        for where, threads in (("", "one core left to the server"), ("_all", "all cores"))
        for case, pictures in (("seeds", "Known"), ("new", "New"))
        for name, declared in RATES.items()
    },
    "first_page": Declared(measures="`fanlight serve` to the first page painted", unit="s", at_most=15),
}
PACKAGES = ("fanlight", "torch", "fastapi", "uvicorn", "dash", "sqlalchemy")
PARTS = ("latency", "throughput", "start")


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rounds N, --requests N (per round of a latency), --seconds S (per round of a throughput), --threads N,
    --only PART (latency, throughput or start)."""
    chosen = _options(options)
    about: dict[str, Any] = {
        "benchmark": "serve",
        "date": today(),
        "machine": machine(),
        "versions": versions(PACKAGES),
    }
    about["options"] = vars(chosen)
    measured: dict[str, Sequence[float]] = {}
    remarks: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="fanlight-bench-") as name:
        folder = Path(name)
        if chosen.only in (None, "start"):
            say("From the command to the first page.")
            measured["first_page"] = _start.first_page(folder, chosen.rounds)
            remarks["first_page"] = "Empty data folder; without the time of make itself; the browser was open."
        if chosen.only in (None, "latency"):
            say("Answer times, quiet and busy.")
            with fanlight(folder / "latency", trust="request", examples=False) as server, _api.client(server) as http:
                measured |= _latencies(http, chosen.rounds, chosen.requests)
        if chosen.only in (None, "throughput"):
            from fanlight.bench._offline import Offline

            for where, threads in _threads(chosen.threads).items():
                say(f"Sixteen clients and offline, in turn; threads: {threads}.")
                with fanlight(folder / f"served{where}", trust="request", examples=False, threads=threads) as server:
                    compared = _throughput.compare(server, Offline(threads), chosen.rounds, chosen.seconds)
                for case, found in compared.items():
                    measured |= _rates(f"{case}{where}", found)
                    remarks[f"{case}{where}_ratio"] = f"Threads of torch on both sides: {threads}. {found.remark}"
    found_figures = figures(FIGURES, measured, remarks)
    return {**about, **found_figures, "passed": passed(found_figures)}


def _latencies(http: Any, rounds: int, requests: int) -> dict[str, list[float]]:
    quiet = _latency.stored(http, rounds, requests)
    with _latency.busy(http) as inputs:
        loaded = _latency.stored(http, rounds, requests)
        promised = _latency.accepted(http, inputs, rounds, requests)
    return {
        **{f"stored_{p}": v for p, v in quiet.items()},
        **{f"stored_busy_{p}": v for p, v in loaded.items()},
        **{f"accepted_{p}": v for p, v in promised["seeds"].items()},
        **{f"accepted_new_{p}": v for p, v in promised["new"].items()},
    }


def _rates(case: str, found: _throughput.Compared) -> dict[str, list[float]]:
    served = [held.rate for held in found.served]
    return {
        f"{case}_ratio": ratios(served, [o.rate for o in found.offline]),
        f"{case}_served": served,
        f"{case}_offline": [o.rate for o in found.offline],
        f"{case}_offline_cpu": [o.cpu for o in found.offline],
        f"{case}_fill": [held.fill for held in found.served],
        **{f"{case}_{who}_cpu": [held.cpu[who] for held in found.served] for who in ("server", "worker", "clients")},
    }


def _threads(chosen: int | None) -> dict[str, int]:
    """Threads of torch on both sides: all but one core, as a server of many people is best set, and all of them."""
    cores = len(os.sched_getaffinity(0))
    return {"": max(1, cores - 1), "_all": cores} if chosen is None else {"_all": chosen}


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench serve --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100, help="per round of a latency")
    parser.add_argument("--seconds", type=float, default=15.0, help="per round of a throughput")
    parser.add_argument("--threads", type=int, help="of torch, on both sides, instead of all but one and all cores")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    return parser.parse_args(given)
