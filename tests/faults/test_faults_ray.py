"""A server on Ray: what a lost replica or server costs, seen from the ledger."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import psutil
import pytest
from faults_client import LONG, MODEL, Remote

from support.processes import FanlightServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="fanlight[ray] is not installed"),
]
SETTINGS: dict[str, Any] = {"default_model": False, "trust": "request", "threads": 1, "engine": "ray", "ray_bulk": 0}


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """A server with a cluster of its own and one replica."""
    folder = tmp_path_factory.mktemp("ray")
    model = folder / "tiny.py"
    model.write_text(MODEL)
    made = Remote(FanlightServer(folder, **{**SETTINGS, "models": model}), model)
    made.server.start()
    yield made
    made.http.close()
    made.server.stop(patience=30)


def family(remote: Remote) -> list[psutil.Process]:
    return psutil.Process(remote.server.pid).children(recursive=True)


def replica(remote: Remote) -> psutil.Process:
    return next(p for p in family(remote) if p.name().startswith("ray::ServeRepl"))


def told(remote: Remote, ident: str) -> list[str]:
    """The ends of the explanation's job that streams of news replay."""
    events = [json.loads(data) for (data,) in remote.sql("SELECT data FROM event")]
    return [e["state"] for e in events if e.get("explanation") == ident and e["state"] not in ("queued", "running")]


@pytest.mark.parametrize("victim", ["replica", "its worker"])
def test_what_a_killed_replica_held_is_done_by_the_next_and_nothing_is_doubled(remote: Remote, victim: str) -> None:
    with remote.slow():
        ident = remote.promise(**LONG)
        remote.begun(ident)
        process = replica(remote)
        (process if victim == "replica" else process.children()[0]).send_signal(signal.SIGKILL)
        record = remote.finished(ident)
    assert record["state"] == "succeeded"
    ((attempt, crashes),) = remote.sql("SELECT attempt, crashes FROM job WHERE explanation = ?", ident)
    assert attempt >= 2 and crashes == 1
    assert told(remote, ident) == ["succeeded"]
    picture = record["input"]["id"] if isinstance(record["input"], dict) else record["input"]
    remote.http.delete(f"/explanations/{ident}").raise_for_status()
    again = remote.finished(remote.promise(input=picture, **LONG))
    assert [a["digest"] for a in again["artifacts"]] == [a["digest"] for a in record["artifacts"]]


def test_a_killed_server_takes_its_replicas_along_and_the_next_does_what_was_promised(remote: Remote) -> None:
    with remote.slow():
        ident = remote.promise(**LONG)
        remote.begun(ident)
        processes = family(remote)
        assert len(processes) > 4
        psutil.Process(remote.server.pid).kill()
        _, alive = psutil.wait_procs([p for p in processes if "Agent" not in p.name()], timeout=20)
        assert alive == [], [p.name() for p in alive]  # Ray's agents, which hold nothing, notice it later
    remote.server.process.wait(10)
    remote.server.start()
    assert remote.finished(ident)["state"] == "succeeded"
    assert told(remote, ident) == ["succeeded"]


def test_a_polite_end_hands_the_work_back(remote: Remote) -> None:
    processes = family(remote)
    assert remote.server.stop(patience=40) == -signal.SIGTERM, remote.server.output()
    assert '"drained"' in remote.server.output(), "it had its time"
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert alive == [], [p.name() for p in alive]
    assert "Traceback" not in remote.server.output()
