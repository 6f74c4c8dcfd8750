"""Further checks of a map while things break: they are jobs like others."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from faults_client import Remote

pytestmark = pytest.mark.slow


def ask(remote: Remote, ident: str, *measures: str) -> dict[str, Any]:
    answer = remote.http.post(f"/explanations/{ident}/trust", json={"measures": list(measures)})
    assert answer.status_code in (200, 202), answer.text
    return dict(answer.json()["checks"])


def over(remote: Remote, ident: str, measure: str) -> dict[str, Any]:
    end = time.monotonic() + 90
    while (check := remote.record(ident)["trust"]["checks"][measure])["state"] == "pending":
        assert time.monotonic() < end, remote.server.output()
        time.sleep(0.1)
    return dict(check)


def begun(remote: Remote, job: str) -> None:
    end = time.monotonic() + 60
    while remote.http.get(f"/jobs/{job}").json()["progress"] == 0:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_check_survives_the_end_of_its_worker(remote: Remote) -> None:
    ident = remote.promise()
    remote.whole(ident)
    with remote.slow():
        job = ask(remote, ident, "randomisation")["randomisation"]["job"]
        begun(remote, job)
        remote.child.kill()
    assert over(remote, ident, "randomisation")["state"] == "succeeded"
    assert remote.sql("select attempt, crashes from job where id = ?", job) == [(2, 1)]


def test_a_check_survives_the_end_of_its_server(start: Callable[..., Remote]) -> None:
    remote = start()
    ident = remote.promise()
    remote.whole(ident)
    with remote.slow():
        checks = ask(remote, ident, "stability", "randomisation")
        begun(remote, checks["stability"]["job"])
        remote.server.send(signal.SIGKILL)
        remote.server.kill()
    remote.server.start()
    for measure in checks:
        assert over(remote, ident, measure)["state"] == "succeeded"


def test_a_picture_that_somebody_waits_for_does_not_wait_for_a_check(remote: Remote) -> None:
    ident = remote.promise()
    remote.whole(ident)
    with remote.slow():
        job = ask(remote, ident, "randomisation")["randomisation"]["job"]
        begun(remote, job)
        other = remote.promise()
        remote.whole(other)
        assert remote.http.get(f"/jobs/{job}").json()["state"] == "running", "the picture overtook it"
    assert over(remote, ident, "randomisation")["state"] == "succeeded"
