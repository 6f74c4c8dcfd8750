"""How soon the server answers: a stored explanation, and the promise (202) of a new one while the device is busy."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import httpx

from fanlight.bench import _api, _pictures
from fanlight.bench._figures import percentile
from fanlight.errors import FanlightError

STORED = 8  # explanations that are read in turn
LONG = {"window": 8, "stride": 4}  # 3,026 passes: minutes on a CPU


def stored(http: httpx.Client, rounds: int, requests: int) -> dict[str, list[float]]:
    """Milliseconds of GET /explanations/{id}: per round median and 95th percentile."""
    pictures = _pictures.photographs(seed=1)
    ids = []
    for picture in itertools.islice(pictures, STORED):
        body = _api.request(_api.upload(http, picture))
        _, answer = _api.timed(http, "POST", "/explanations", 200, params={"wait": 30}, json=body)
        ids.append(answer.json()["id"])
    found: dict[str, list[float]] = {"p50": [], "p95": []}
    for _ in range(rounds):
        turn = itertools.islice(itertools.cycle(ids), requests)
        _note(found, [_api.timed(http, "GET", f"/explanations/{id}", 200)[0] for id in turn])
    return found


@contextlib.contextmanager
def busy(http: httpx.Client, jobs: int = 4) -> Iterator[list[str]]:
    """Keeps the device at work with long occlusions; raises where it ran out of them before the context closed."""
    inputs = [_api.upload(http, p) for p in itertools.islice(_pictures.photographs(seed=2), jobs)]
    names = []
    for picture in inputs:
        body = _api.request(picture, "occlusion", params=LONG)
        names.append(_api.timed(http, "POST", "/explanations", 202, json=body)[1].json()["job"])
    try:
        yield inputs
        if not any(_api.unfinished(http, name) for name in names):
            raise FanlightError(
                "The device was idle before the measurement was over.",
                code="too_fast",
                hint="Fewer --rounds or --requests.",
            )
    finally:
        for name in names:
            http.delete(f"/jobs/{name}")  # 409 where it is over: nothing to do
        _api.until_quiet(http)


def accepted(http: httpx.Client, known: list[str], rounds: int, requests: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds until POST /explanations answers 202, in two cases: another seed for a picture whose prediction is
    known, and a picture never seen with the target left out."""
    fresh = _pictures.photographs(seed=3)
    seeds = itertools.count(1)
    found: dict[str, dict[str, list[float]]] = {"seeds": {"p50": [], "p95": []}, "new": {"p50": [], "p95": []}}
    for _ in range(rounds):
        bodies = [
            _api.request(p, seed=next(seeds), target=0) for p in itertools.islice(itertools.cycle(known), requests)
        ]
        _note(found["seeds"], [_promise(http, body) for body in bodies])
        _drain(http)
        bodies = [_api.request(_api.upload(http, p)) for p in itertools.islice(fresh, requests)]
        _note(found["new"], [_promise(http, body) for body in bodies])
        _drain(http)
    return found


def _promise(http: httpx.Client, body: dict[str, object]) -> float:
    return _api.timed(http, "POST", "/explanations", 202, json=body)[0]


def _drain(http: httpx.Client) -> None:
    """Lets the short jobs finish, so that a round does not run into the limit of one person."""
    _api.until_quiet(http, most=8)


def _note(found: dict[str, list[float]], seconds: list[float]) -> None:
    for name, p in (("p50", 50), ("p95", 95)):
        found[name].append(1000 * percentile(seconds, p))
