"""Faults that end the server: what was promised before holds after the next start."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
from faults_client import LONG, Remote

from fanlight.bench.kill import campaign
from support import postgres
from support.processes import BIN, Process

pytestmark = pytest.mark.slow


def examine(folder: Path, points: int, model: str = "tiny", seed: int = 0) -> None:
    found = campaign(folder, points, model, seed)
    history = found["history"]
    assert not history.problems, history.remarks
    assert found["corrupt"] == [0]
    assert len(history.accepted) > points and max(found["unfinished"]) > 0, "there was something to lose"


def test_what_was_promised_survives_kill_9_at_three_moments(tmp_path: Path) -> None:
    examine(tmp_path, 3)


@pytest.mark.timeout(2400)
def test_what_was_promised_survives_kill_9_at_fifty_moments(tmp_path: Path) -> None:
    examine(tmp_path, 50, seed=1)


@pytest.mark.timeout(1200)
def test_what_was_promised_survives_kill_9_with_the_default_model(tmp_path: Path) -> None:
    examine(tmp_path, 6, "efficientnet-lite0", seed=2)


def test_a_polite_end_gives_back_what_is_not_finished_and_leaves_no_process(start: Callable[..., Remote]) -> None:
    remote = start()
    with remote.slow():
        idents = [remote.promise(**LONG) for _ in range(4)]
        remote.begun(idents[0])
        child = remote.child
        began = time.monotonic()
        remote.server.send(signal.SIGTERM)  # to the whole group, as a service manager does
        assert remote.server.process is not None
        assert remote.server.process.wait(30) in (0, -signal.SIGTERM)
    assert time.monotonic() - began < 25
    assert not psutil.pid_exists(child.pid)
    assert all(c == 0 for (c,) in remote.sql("select crashes from job")), "an end that was asked for is no crash"
    remote.server.start()
    for ident in idents:
        remote.whole(ident)


def test_a_stream_resumes_where_it_was_after_a_crash(start: Callable[..., Remote]) -> None:
    remote = start()
    for _ in range(2):
        remote.whole(remote.promise())
    seen = remote.stream(0, 2)
    with remote.slow():
        ident = remote.promise(**LONG)
        remote.begun(ident)
        remote.server.kill()
    remote.server.start()
    remote.whole(ident)
    expected = remote.events()
    assert seen + remote.stream(seen[-1], len(expected) - 2) == expected


@pytest.mark.postgres
def test_a_server_that_sleeps_past_its_lease_loses_its_jobs_and_its_results_are_dropped(
    start: Callable[..., Remote], new_database: Callable[[], str], tmp_path: Path
) -> None:
    shared = {"database_url": new_database(), "artifacts_url": tmp_path / "artifacts", "step_timeout": 120}
    sleeper = start(**shared)
    with sleeper.slow():
        idents = [sleeper.promise(**LONG) for _ in range(3)]
        sleeper.begun(idents[0])
        sleeper.server.send(signal.SIGSTOP)
    heir = start(**shared)
    done = {i: heir.finished(i, 90)["artifacts"] for i in idents}
    sleeper.server.send(signal.SIGCONT)
    time.sleep(5)
    for ident in idents:
        heir.whole(ident)
        assert heir.record(ident)["artifacts"] == done[ident] == sleeper.record(ident)["artifacts"]
    sleeper.whole(sleeper.promise())


@pytest.mark.postgres
def test_a_database_that_restarts_costs_no_promise(start: Callable[..., Remote]) -> None:
    if postgres.binaries() is None:
        pytest.skip(postgres.MISSING)
    database = postgres.Postgres(durable=True)
    try:
        database.start()
        remote = start(database_url=database.walled())
        with remote.slow():
            idents = [remote.promise(**LONG) for _ in range(3)]
            remote.begun(idents[0])
            database.stop(signal.SIGQUIT)  # at once, as a crash
            answer = remote.http.get("/explanations")
            assert answer.status_code == 503 and "database" in answer.text
            database.start()
        for ident in idents:
            remote.whole(ident)
    finally:
        database.close()


def test_a_second_server_on_the_same_file_is_refused(start: Callable[..., Remote]) -> None:
    remote = start()
    second = Process(
        [BIN / "fanlight", "serve", "--port", "0", "--data-dir", remote.server.data, "--no-browser"],
        ready=lambda: False,
        log=remote.server.data.parent / "second.log",
    )
    with pytest.raises(RuntimeError, match="Another Fanlight server"):
        second.start()
    assert httpx.get(remote.server.url + "/healthz", trust_env=False).status_code == 200
