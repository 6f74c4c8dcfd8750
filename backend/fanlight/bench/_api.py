"""Requests as a load generator makes them: timed, over kept connections, without reading what it need not know."""

from __future__ import annotations

import time
from typing import Any

import httpx

from fanlight.bench._server import Server
from fanlight.bench._wire import Answer
from fanlight.bundles import DEFAULT
from fanlight.errors import FanlightError

BASE = "/api/v1"


def client(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url + BASE, headers=server.headers, timeout=120, trust_env=False)


def timed(http: httpx.Client, method: str, path: str, expect: int, **more: Any) -> tuple[float, httpx.Response]:
    """(seconds until the whole answer is here, the answer); another status than expected ends the benchmark."""
    begin = time.perf_counter()
    answer = http.request(method, path, **more)
    took = time.perf_counter() - begin
    check(answer, expect)
    return took, answer


def check(answer: httpx.Response | Answer, expect: int) -> None:
    if answer.status_code != expect:
        raise FanlightError(
            f"The server answered {answer.status_code} instead of {expect}: {answer.text[:500]}", code="unexpected"
        )


def upload(http: httpx.Client, picture: tuple[str, bytes]) -> str:
    """The id of the stored picture."""
    _, answer = timed(http, "POST", "/inputs", 201, files={"file": picture})
    return str(answer.json()["id"])


def request(picture: str, explainer: str = "saliency", **more: Any) -> dict[str, Any]:
    """The body of a request for an explanation by the default model."""
    return {"model": DEFAULT, "input": picture, "explainer": explainer, **more}


def open_jobs(http: httpx.Client) -> int:
    """How many jobs have not ended."""
    _, answer = timed(http, "GET", "/jobs", 200, params={"state": "queued,running", "limit": 1})
    return int(answer.json()["total"])


def unfinished(http: httpx.Client, job: str) -> bool:
    return timed(http, "GET", f"/jobs/{job}", 200)[1].json()["state"] in ("queued", "running")


def until_quiet(http: httpx.Client, most: int = 0, patience: float = 900) -> None:
    """Waits until at most `most` jobs are left."""
    end = time.monotonic() + patience
    while open_jobs(http) > most:
        if time.monotonic() > end:
            raise FanlightError(f"The server has not finished its jobs within {patience:.0f} s.", code="too_slow")
        time.sleep(0.2)
