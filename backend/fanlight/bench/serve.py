"""Answer times of the server, its throughput under sixteen clients, and the time from the command to the first page.

Starts its own servers with fresh data folders on loopback. Load is made by this process, on the same machine: what the clients
cost is taken from the server.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fanlight.bench import _api, _latency, _start, _throughput
from fanlight.bench._figures import Declared, figures, passed, ratios
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._server import fanlight
from fanlight.cli.output import say

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
    "seeds_ratio": Declared(measures="16 clients, known pictures: maps per second over offline", at_least=0.9),
    "seeds_served": Declared(measures="16 clients, known pictures, through the server", unit="maps/s"),
    "seeds_offline": Declared(measures="Known pictures, offline in batches", unit="maps/s"),
    "new_ratio": Declared(measures="16 clients, new pictures: maps per second over offline", at_least=0.9),
    "new_served": Declared(measures="16 clients, new pictures, through the server", unit="maps/s"),
    "new_offline": Declared(measures="New pictures, offline in batches", unit="maps/s"),
    **{
        f"{case}_{name}": Declared(measures=f"{pictures} pictures, processor time per map {of}", unit="ms")
        for case, pictures in (("seeds", "Known"), ("new", "New"))
        for name, of in (
            ("offline_cpu", "offline"),
            ("worker_cpu", "of the server's worker"),
            ("server_cpu", "of the server itself"),
            ("clients_cpu", "of the clients"),
        )
    },
    "seeds_fill": Declared(measures="Known pictures, maps that the worker has begun, on average"),
    "new_fill": Declared(measures="New pictures, maps that the worker has begun, on average"),
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
        with fanlight(folder / "served", trust="request", examples=False, threads=chosen.threads) as server:
            if chosen.only in (None, "latency"):
                say("Answer times, quiet and busy.")
                with _api.client(server) as http:
                    measured |= _latencies(http, chosen.rounds, chosen.requests)
            if chosen.only in (None, "throughput"):
                from fanlight.bench._offline import Offline

                say("Sixteen clients and offline, in turn.")
                compared = _throughput.compare(server, Offline(chosen.threads), chosen.rounds, chosen.seconds)
                for case, found in compared.items():
                    measured |= _rates(case, found)
                    remarks[f"{case}_ratio"] = found.remark
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


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench serve --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100, help="per round of a latency")
    parser.add_argument("--seconds", type=float, default=15.0, help="per round of a throughput")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch, on both sides")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    return parser.parse_args(given)
