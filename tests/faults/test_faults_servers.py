"""Two servers on one PostgreSQL: any of them answers any request, and what one does the other knows at once."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psycopg
import pytest
from faults_client import LONG, MODEL, Remote, from_outside

from support.processes import FanlightServer

pytestmark = pytest.mark.postgres
SOON = 5.0  # seconds; without news it is found by looking, after 15 at a stream and 10 at a lease
SETTINGS: dict[str, Any] = {"default_model": False, "trust": "request", "threads": 1}


class Pair:
    """Args: one, other: servers on the database `url`."""

    def __init__(self, one: Remote, other: Remote, url: str):
        self.one, self.other, self.url = one, other, url

    def sql(self, query: str, *values: Any) -> list[Any]:
        with psycopg.connect(from_outside(self.url), autocommit=True) as conn:
            found = conn.execute(query, values)
            return found.fetchall() if found.description else []


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory, new_database: Callable[[], str]) -> Iterator[Callable[[], Pair]]:
    made: list[Remote] = []

    def make() -> Pair:
        url, folder = new_database(), tmp_path_factory.mktemp("pair")
        model = folder / "tiny.py"
        model.write_text(MODEL)
        remotes = []
        for name in ("one", "other"):
            (folder / name).mkdir()
            places = {"database_url": url, "artifacts_url": folder / "artifacts", "models": model}
            server = FanlightServer(folder / name, **SETTINGS, **places)
            server.start()
            remotes.append(Remote(server, model))
            made.append(remotes[-1])
        return Pair(remotes[0], remotes[1], url)

    yield make
    for remote in made:
        remote.server.stop(patience=15)
        remote.http.close()


@pytest.fixture(scope="module")
def pair(pairs: Callable[[], Pair]) -> Pair:
    return pairs()


class Stream:
    """What a server's stream of news says, read in a thread until `close`."""

    def __init__(self, remote: Remote):
        self.heard: list[dict[str, Any]] = []
        self._over, self._open = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._read, args=(remote,), daemon=True)
        self._thread.start()
        assert self._open.wait(10)
        time.sleep(0.2)  # the stream looks up where the table of events ends

    def _read(self, remote: Remote) -> None:
        with contextlib.suppress(httpx.TransportError), remote.http.stream("GET", "/events", timeout=30) as answer:
            for line in answer.iter_lines():
                self._open.set()
                if line.startswith("data:"):
                    self.heard.append(json.loads(line[5:]))
                if self._over.is_set():
                    return

    def until(self, wanted: Callable[[dict[str, Any]], bool], patience: float = SOON) -> dict[str, Any]:
        end = time.monotonic() + patience
        while time.monotonic() < end:
            for news in self.heard:
                if wanted(news):
                    return news
            time.sleep(0.02)
        raise AssertionError(f"not heard within {patience} s: {self.heard}")

    def close(self) -> None:
        self._over.set()


def test_what_one_server_promised_any_server_shows(pair: Pair) -> None:
    ident = pair.one.promise()
    pair.other.whole(ident)
    pair.one.whole(ident)
    record = pair.one.record(ident)
    assert pair.other.record(ident) == record
    assert pair.other.ask(input=record["input"]).status_code == 200, "stored, so not computed again"


def test_events_of_one_server_reach_the_streams_of_both(pair: Pair) -> None:
    streams = [Stream(pair.one), Stream(pair.other)]
    for remote in (pair.one, pair.other):
        ident = remote.promise()
        for stream in streams:
            stream.until(lambda n, i=ident: n.get("explanation") == i and n.get("state") == "succeeded")  # type: ignore[misc]
    for stream in streams:
        stream.close()


def test_progress_is_seen_on_both_whoever_computes(pair: Pair) -> None:
    streams = [Stream(pair.one), Stream(pair.other)]
    with pair.one.slow():
        ident = pair.one.promise(**LONG)
        for stream in streams:
            stream.until(
                lambda n: n.get("explanation") == ident and n.get("state") == "running" and n["progress"] > 0, 10
            )
    pair.other.whole(ident)
    for stream in streams:
        stream.close()


def test_who_waits_at_one_server_is_answered_when_the_other_is_done(pair: Pair) -> None:
    """Whichever server has computed it, the long wait of the other ends with it and not with its time."""
    picture = pair.one.picture()
    body = {"model": "tiny", "explainer": "saliency", "input": picture}
    with ThreadPoolExecutor(2) as pool:
        begun = time.monotonic()
        asked = [pool.submit(r.http.post, "/explanations?wait=20", json=body) for r in (pair.one, pair.other)]
        answers = [a.result() for a in asked]
    assert [a.status_code for a in answers] == [200, 200] and time.monotonic() - begun < 10
    assert answers[0].json()["id"] == answers[1].json()["id"]


def test_fifty_equal_requests_at_once_over_both_are_one_computation(pair: Pair) -> None:
    picture = pair.one.picture()
    with ThreadPoolExecutor(50) as pool:
        both = (pair.one, pair.other)
        answers = list(pool.map(lambda n: both[n % 2].ask(input=picture, seed=3), range(50)))
    assert {a.status_code for a in answers} <= {200, 202}
    (ident,) = {a.json()["id"] for a in answers}
    pair.other.whole(ident)
    assert pair.sql("select count(*), max(attempt) from job where explanation = %s", ident) == [(1, 1)]
    assert pair.sql("select count(*) from explanation where input = %s", picture) == [(1,)]


def test_many_jobs_are_each_computed_once(pair: Pair) -> None:
    with ThreadPoolExecutor(8) as pool:
        idents = list(pool.map(lambda n: (pair.one, pair.other)[n % 2].promise(), range(24)))
    for ident in idents:
        pair.one.whole(ident)
    assert pair.sql("select max(attempt), count(*) from job where explanation = any(%s)", idents) == [(1, 24)]


def test_cancelling_at_either_server_stops_the_work_at_once(pair: Pair) -> None:
    with pair.one.slow():
        for remote in (pair.one, pair.other):
            ident = pair.one.promise(**LONG)
            pair.one.begun(ident)
            begun = time.monotonic()
            assert remote.http.delete(f"/jobs/{remote.record(ident)['job']}").status_code == 200
            assert pair.one.finished(ident, patience=SOON)["state"] == "cancelled"
            assert time.monotonic() - begun < SOON


def killed(pairs: Callable[[], Pair], *, wait: bool) -> None:
    """The server that works on a long job dies; the other finishes it."""
    pair = pairs()
    with pair.one.slow():
        ident = pair.one.promise(**LONG)
        pair.other.begun(ident)
        busy, end = [False, False], time.monotonic() + 3
        while not any(busy) and time.monotonic() < end:
            busy = [_at_work(remote) for remote in (pair.one, pair.other)]
        assert sorted(busy) == [False, True]
        victim, heir = (pair.one, pair.other) if busy[0] else (pair.other, pair.one)
        victim.server.kill()
    if not wait:  # as if the thirty seconds of its lease had passed
        pair.sql("update job set lease_until = lease_until - 30000000 where explanation = %s", ident)
    heir.whole(ident)
    assert pair.sql("select attempt, crashes from job where explanation = %s", ident) == [(2, 1)]


def _at_work(remote: Remote) -> bool:
    metrics = httpx.get(f"{remote.server.url}/metrics", headers=remote.server.headers, trust_env=False).text
    return "fanlight_engine_running 1.0" in metrics


@pytest.mark.slow
def test_the_job_of_a_killed_server_is_finished_by_the_other(pairs: Callable[[], Pair]) -> None:
    killed(pairs, wait=False)


@pytest.mark.slow
def test_the_job_of_a_killed_server_is_finished_by_the_other_when_its_lease_is_over(
    pairs: Callable[[], Pair],
) -> None:
    killed(pairs, wait=True)


def test_without_news_the_other_servers_work_is_found_by_looking(pair: Pair) -> None:
    """Every listening connection is cut again and again; nothing depends on a notification."""
    over = threading.Event()

    def cut() -> None:
        while not over.wait(0.1):
            pair.sql("select pg_terminate_backend(pid) from pg_stat_activity where query = 'LISTEN fanlight'")

    knife = threading.Thread(target=cut)
    knife.start()
    try:
        stream = Stream(pair.other)
        ident = pair.one.promise()
        stream.until(lambda n: n.get("explanation") == ident and n.get("state") == "succeeded", 15)
        stream.close()
    finally:
        over.set()
        knife.join()
