"""Held load: requests that wait for nobody, at 70 % of what the server can take, then at 200 %, then its recovery; and how its memory grows.

Of the requests 70 % browse what is stored (records, the gallery, maps, thumbnails), 20 % are live edits of a concept bottleneck by ten people,
and 10 % ask for new explanations by the default model. What the server can take is the highest rate of a rising series at which it kept up: no
error, no 429, and three of four stored records within the target of their 95th percentile. Load is made by this process, on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fanlight.bench import _api, _pictures, concepts
from fanlight.bench._arrivals import Ask, Phase, arrive
from fanlight.bench._figures import Declared, figures, passed, percentile
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._processes import memory, tree
from fanlight.bench._server import Server, fanlight
from fanlight.bench._wire import Answer, Wire
from fanlight.cli.output import say
from fanlight.errors import FanlightError

STORED, LIVE, PEOPLE, RECORDS = 30.0, 100.0, 10, 32
SHARES = {"record": 0.40, "gallery": 0.08, "map": 0.14, "thumbnail": 0.08, "live": 0.20, "new": 0.10}
CALM = 1.5  # times the 95th percentile of the held phase
RECOVERED = 30.0  # seconds
STEPS, AROUND = 14, 40.0  # most rates that are tried; seconds for starting the server and filling it
LOOKS = 10  # at memory, without which nothing is said about how it grows
FIGURES = {
    "capacity": Declared(measures="Rate at which the server kept up", unit="requests/s"),
    "held_rate": Declared(measures="Held: rate", unit="requests/s"),
    "held_requests": Declared(measures="Held: requests"),
    "held_errors": Declared(measures="Held: errors and refusals", at_most=0),
    "stored_p95": Declared(measures="Held: stored explanation, 95th percentile", unit="ms", at_most=STORED),
    "stored_p99": Declared(measures="Held: stored explanation, 99th percentile", unit="ms"),
    "browse_p95": Declared(measures="Held: gallery, maps and thumbnails, 95th percentile", unit="ms"),
    "live_p95": Declared(measures="Held: live edit, 10 people, 95th percentile", unit="ms", at_most=LIVE),
    "live_dropped": Declared(measures="Held: live edits that a newer one overtook"),
    "new_p95": Declared(measures="Held: answer to a new question, 95th percentile", unit="ms"),
    "memory_slope": Declared(measures="Held: growth of memory (PSS) per minute", unit="MB", at_most=1),
    "memory": Declared(measures="Held: memory (PSS) at the end", unit="MB"),
    "open_jobs": Declared(measures="Held: jobs unfinished at the end"),
    "over_rate": Declared(measures="Overload: rate", unit="requests/s"),
    "over_errors": Declared(measures="Overload: answers that are neither good nor 429", at_most=0),
    "over_refused": Declared(measures="Overload: share of answers that are 429"),
    "over_stored": Declared(measures="Overload: stored explanation, 95th percentile over that of the held phase", at_most=CALM),
    "over_live": Declared(measures="Overload: live edit, the same", at_most=CALM),
    "over_new": Declared(measures="Overload: new question that was accepted, the same", at_most=CALM),
    "refused_p95": Declared(measures="Overload: 429, 95th percentile", unit="ms", at_most=50),
    "recovery": Declared(measures="From the end of the overload until answers are as in the held phase", unit="s", at_most=RECOVERED),
    "sender_late": Declared(measures="Held: this program was late in sending, 95th percentile", unit="ms"),
    "over_late": Declared(measures="Overload: this program was late in sending, 95th percentile", unit="ms"),
}  # fmt: skip


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --held S, --overload S, --recovery S, --step S (seconds of each rate of the series), --rate R (requests a second, instead of looking
    for what the server can take), --first R, --threads N, --seed N."""
    chosen = _options(options)
    about: dict[str, Any] = {"benchmark": "load", "date": today(), "machine": machine()}
    about |= {"versions": versions(("fanlight", "fastapi", "uvicorn", "sqlalchemy", "torch")), "options": vars(chosen)}
    with tempfile.TemporaryDirectory(prefix="fanlight-load-") as name:
        folder = Path(name)
        started = fanlight(folder, models=concepts.write(folder / "large"), examples=False, trust="request", scenes=False,
                           threads=chosen.threads, principal_limit=100_000)  # fmt: skip
        with started as server:
            found, remarks, errors = asyncio.run(_measured(server, chosen))
    made = figures(FIGURES, found, remarks)
    return {**about, **made, "errors": errors, "passed": passed(made, FIGURES)}


def planned(chosen: argparse.Namespace) -> float:
    """Seconds that a run with these options takes at most, if the server finishes its jobs between the phases."""
    series = 0.0 if chosen.rate else STEPS * chosen.step
    return float(AROUND + series + chosen.held + chosen.overload + chosen.recovery)


async def _measured(
    server: Server, chosen: argparse.Namespace
) -> tuple[dict[str, list[float]], dict[str, str], dict[str, int]]:
    rng = random.Random(chosen.seed)
    stored, live = await asyncio.to_thread(_stocked, server)
    async with Wire(server.url + _api.BASE, server.headers) as http:
        asks = _asks(http, stored, live, rng)
        capacity = chosen.rate or await _capacity(asks, chosen, rng, server)
        say(f"Held: {chosen.held:g} s at {0.7 * capacity:.0f} requests/s.")
        watch = asyncio.create_task(_watched(server))
        held = await arrive(asks, 0.7 * capacity, chosen.held, rng)
        watch.cancel()
        seen = (await asyncio.gather(watch, return_exceptions=True))[0]
        left = await asyncio.to_thread(_left, server)
        await asyncio.to_thread(_quiet, server)
        say(f"Overload: {chosen.overload:g} s at {2 * capacity:.0f} requests/s.")
        over = await arrive(asks, 2 * capacity, chosen.overload, rng)
        say("Recovery.")
        after = await arrive(asks, 0.7 * capacity, chosen.recovery, rng)
    sizes = seen if isinstance(seen, list) else []
    found = _found(capacity, held, over, after, sizes)
    found["open_jobs"] = [left]
    remarks = {}
    if found.get("recovery", [0.0])[0] >= chosen.recovery:
        remarks["recovery"] = "Not until the end of the phase."
    if over.dropped:
        remarks["over_live"] = f"{over.dropped} edits were overtaken by a newer one."
    return found, remarks, {k: n for phase in (held, over, after) for k, n in phase.errors.most_common(5)}


def _found(
    capacity: float, held: Phase, over: Phase, after: Phase, sizes: list[tuple[float, float]]
) -> dict[str, list[float]]:
    browsed = [t for kind in ("gallery", "map", "thumbnail") for t in held.answered[kind]]
    answers = over.good + len(over.refused) + over.errors.total() + over.dropped
    found = {
        "capacity": capacity, "held_rate": held.due / max(held.seconds, 1e-9), "held_requests": held.due,
        "held_errors": held.errors.total() + len(held.refused), "stored_p95": held.p("record", 95), "stored_p99": held.p("record", 99),
        "browse_p95": percentile(browsed, 95) if browsed else float("nan"), "live_p95": held.p("live", 95), "live_dropped": held.dropped,
        "new_p95": held.p("new", 95), "over_rate": over.due / max(over.seconds, 1e-9), "over_errors": over.errors.total(),
        "over_refused": len(over.refused) / max(answers, 1), "over_stored": over.p("record", 95) / held.p("record", 95),
        "over_live": over.p("live", 95) / held.p("live", 95), "over_new": over.p("new", 95) / held.p("new", 95),
        "recovery": recovered(after, held), "sender_late": percentile(held.late, 95) if held.late else float("nan"),
        "over_late": percentile(over.late, 95) if over.late else float("nan"),
    }  # fmt: skip
    if over.refused:
        found["refused_p95"] = percentile(over.refused, 95)
    if len(sizes) >= LOOKS:
        found |= {"memory_slope": slope(sizes), "memory": sizes[-1][1]}
    return {name: [float(value)] for name, value in found.items() if value == value}


def slope(sizes: Sequence[tuple[float, float]]) -> float:
    """MB per minute: the median of the slopes between all pairs of the last three quarters (Theil and Sen [RECALLED]), which one large request
    does not move. Args: sizes: (seconds, MB)."""
    kept = list(sizes)[len(sizes) // 4 :]
    pairs = [(b[1] - a[1]) / (b[0] - a[0]) * 60 for a, b in itertools.combinations(kept, 2) if b[0] > a[0]]
    return float(np.median(pairs)) if pairs else 0.0


def recovered(after: Phase, held: Phase, window: float = 2.0) -> float:
    """Seconds from which on every window is as in the held phase: no refusal, no error, and the 95th percentile of stored records within CALM times
    that of the held phase. A window without a stored record is not; NaN where the held phase says nothing."""
    if not held.answered["record"]:
        return float("nan")
    bound = CALM * held.p("record", 95)
    windows: dict[int, list[float]] = {n: [] for n in range(int(after.seconds / window))}
    for due, kind, took in after.when:
        if kind == "record":
            windows.setdefault(int(due / window), []).append(took)
    bad = [n for n, times in windows.items() if not times or percentile(times, 95) > bound]
    bad += [int(due / window) for due in after.unanswered]
    return window * (max(bad) + 1) if bad else 0.0


async def _capacity(
    asks: dict[str, tuple[float, Ask]], chosen: argparse.Namespace, rng: random.Random, server: Server
) -> float:
    """The highest rate of a series at which the server kept up. Other work on the machine may spoil a step, so a rate is tried twice; where the
    server does not keep up with the first one, the series falls."""
    rate, best, failed = float(chosen.first), 0.0, 0
    for _ in range(STEPS):
        phase = await arrive(asks, rate, chosen.step, rng, limit=1000)
        busy = await asyncio.to_thread(_left, server)
        kept = not phase.unanswered and not phase.errors and phase.p("record", 75) <= STORED and busy <= rate
        say(f"{rate:.0f} requests/s: stored {phase.p('record', 50):.1f} ms, 95 % {phase.p('record', 95):.1f} ms; "
            f"live 95 % {phase.p('live', 95):.1f} ms; {len(phase.refused)} refused, {busy} jobs left.")  # fmt: skip
        await asyncio.to_thread(_quiet, server)
        if kept:
            best, failed = max(best, rate), 0
            if rate < chosen.first:
                return best
            rate *= 1.25
        elif failed:
            if best:
                return best
            rate, failed = rate / 1.6, 0
        else:
            failed = 1
    if not best:
        raise FanlightError(
            f"The server did not keep up with {chosen.first:g} requests a second, nor with fewer.", code="too_slow"
        )
    return best


async def _watched(server: Server) -> list[tuple[float, float]]:
    """(seconds, MB of PSS of the server and all it started) every five seconds, until cancelled."""
    seen: list[tuple[float, float]] = []
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        while True:
            total = await asyncio.to_thread(lambda: sum(memory(pid)[1] for pid in tree(server.pid)))
            seen.append((loop.time() - begun, total / 1e6))
            await asyncio.sleep(5)
    except asyncio.CancelledError:
        return seen


# --- what is asked


def _stocked(server: Server) -> tuple[list[dict[str, Any]], str]:
    """Stored explanations, and one of a bottleneck to be edited."""
    with _api.client(server) as http:
        records = []
        for picture in itertools.islice(_pictures.photographs(seed=5), RECORDS):
            body = _api.request(_api.upload(http, picture))
            _, answer = _api.timed(http, "POST", "/explanations", 200, params={"wait": 30}, json=body)
            records.append(answer.json())
        _api.until_quiet(http)
    return records, concepts._explained(server)


def _asks(http: Wire, stored: list[dict[str, Any]], live: str, rng: random.Random) -> dict[str, tuple[float, Ask]]:
    edits = itertools.count()
    seeds = itertools.count(1)

    async def record(_: int) -> Answer:
        return await http.get(f"/explanations/{rng.choice(stored)['id']}")

    async def gallery(n: int) -> Answer:
        return await http.get("/explanations", params={"limit": 24, "sort": ("newest", "oldest")[n % 2]})

    async def map_(_: int) -> Answer:
        return await http.get(f"/artifacts/{rng.choice(stored)['artifacts'][0]['digest']}/render.png")

    async def thumbnail(_: int) -> Answer:
        return await http.get(f"/inputs/{rng.choice(stored)['input']}/thumbnail.webp")

    async def edit(_: int) -> Answer:
        n = next(edits)
        body = {
            "session": f"person {n % PEOPLE}",
            "explanation": live,
            "edits": concepts._change(n),
            "seq": n // PEOPLE,
        }
        return await http.post("/live", json=body)

    async def new(_: int) -> Answer:
        body = _api.request(rng.choice(stored)["input"], seed=next(seeds), target=rng.randrange(1000))
        return await http.post("/explanations", json=body)

    made: dict[str, Ask] = {
        "record": record,
        "gallery": gallery,
        "map": map_,
        "thumbnail": thumbnail,
        "live": edit,
        "new": new,
    }
    return {kind: (SHARES[kind], ask) for kind, ask in made.items()}


def _left(server: Server) -> int:
    with _api.client(server) as http:
        return _api.open_jobs(http)


def _quiet(server: Server) -> None:
    with _api.client(server) as http:
        _api.until_quiet(http, patience=60)


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fanlight bench load --", description=__doc__)
    parser.add_argument("--held", type=float, default=600.0, help="seconds at 70 %%")
    parser.add_argument("--overload", type=float, default=120.0, help="seconds at 200 %%")
    parser.add_argument("--recovery", type=_recovery, default=45.0, help="seconds at 70 %% again")
    parser.add_argument("--step", type=float, default=6.0, help="seconds of each rate of the series")
    parser.add_argument("--first", type=float, default=20.0, help="first rate of the series, requests a second")
    parser.add_argument("--rate", type=float, help="what the server can take, instead of looking for it")
    parser.add_argument("--threads", type=int, default=1, help="of torch in the server")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(given)


def _recovery(given: str) -> float:
    """A phase no longer than the target could not tell that it was missed."""
    seconds = float(given)
    if seconds < RECOVERED + 5:
        raise argparse.ArgumentTypeError(f"{given} is too short to tell; at least {RECOVERED + 5:g} seconds")
    return seconds
