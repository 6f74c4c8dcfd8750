"""Faults that a running server gets over by itself."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from faults_client import LONG, Remote, error, file_limit


def test_a_worker_that_is_killed_during_a_job_costs_an_attempt(remote: Remote) -> None:
    with remote.slow():
        ident = remote.promise(**LONG)
        remote.begun(ident)
        remote.child.kill()
    remote.whole(ident)
    assert remote.sql("select attempt, crashes from job where explanation = ?", ident) == [(2, 1)]


def test_a_worker_that_is_stopped_is_replaced_and_the_job_finishes(remote: Remote) -> None:
    with remote.slow():
        ident = remote.promise(**LONG)
        remote.begun(ident)
        stopped = remote.child
        stopped.send_signal(signal.SIGSTOP)
    remote.whole(ident)
    assert not stopped.is_running()


def test_a_crash_blames_only_the_job_that_had_the_device(remote: Remote) -> None:
    with remote.slow():
        running = remote.promise(**LONG)
        remote.begun(running)
        waiting = [remote.promise(**LONG) for _ in range(6)]
        time.sleep(0.3)
        remote.child.kill()
    for ident in (running, *waiting):
        remote.whole(ident)
    crashes = [remote.sql("select crashes from job where explanation = ?", i)[0][0] for i in (running, *waiting)]
    assert sum(crashes) == 1, crashes


def test_fifty_equal_requests_at_once_are_one_computation(remote: Remote) -> None:
    picture = remote.picture()
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: remote.ask(input=picture, seed=3), range(50)))
    assert {a.status_code for a in answers} <= {200, 202}
    (ident,) = {a.json()["id"] for a in answers}
    remote.whole(ident)
    assert remote.jobs(ident) == 1
    assert remote.sql("select count(*) from explanation where input = ?", picture) == [(1,)]


def test_who_asks_again_after_cancelling_is_not_left_with_a_cancelled_job(remote: Remote) -> None:
    picture = remote.picture()
    with remote.slow():
        ident = remote.promise(input=picture, **LONG)
        remote.begun(ident)
        job = remote.record(ident)["job"]
        assert remote.http.delete(f"/jobs/{job}").status_code == 200
        again = remote.promise(input=picture, **LONG)
    remote.whole(again)


def test_a_full_disk_fails_the_job_with_a_sentence_and_the_same_request_works_later(remote: Remote) -> None:
    picture = remote.picture()
    with file_limit(remote.child.pid, 40_000):
        record = remote.finished(remote.promise(input=picture))
    assert (record["state"], record["error"]["code"]) == ("failed", "disk_full")
    assert "full" in record["error"]["message"] and record["artifacts"] == []
    again = remote.promise(input=picture)
    assert again != record["id"]
    remote.whole(again)


def test_a_full_disk_of_the_database_refuses_and_loses_nothing(remote: Remote) -> None:
    pictures = [remote.picture() for _ in range(4)]
    kept = remote.promise(input=pictures[0])
    remote.whole(kept)
    with file_limit(remote.server.pid, 60_000):
        answers = [remote.ask(input=p, seed=1) for p in pictures]
    refused = [a for a in answers if a.status_code == 503]
    assert refused and all(error(a)["code"] == "disk_full" for a in refused), [a.text for a in answers]
    for answer in answers:
        if answer.status_code != 503:
            remote.whole(answer.json()["id"])
    for picture in pictures:
        remote.whole(remote.promise(input=picture, seed=1))
    remote.whole(kept)


def test_a_damaged_artifact_is_reported_and_recomputing_repairs_it(remote: Remote) -> None:
    for damage in (lambda blob: blob[:100], lambda blob: b"", lambda blob: blob[:-1] + bytes([blob[-1] ^ 1])):
        ident = remote.promise()
        remote.whole(ident)
        name = remote.record(ident)["artifacts"][0]["digest"]
        path = remote.artifact(name)
        path.write_bytes(damage(path.read_bytes()))
        for address in (f"/artifacts/{name}/raw", f"/artifacts/{name}", f"/artifacts/{name}/render.png"):
            answer = remote.http.get(address)
            assert answer.status_code >= 400 and error(answer)["code"] in ("artifact_damaged", "artifact_gone")
            assert "Recompute" in error(answer)["hint"]
        repaired = remote.http.post(f"/explanations/{ident}/recompute")
        assert repaired.status_code in (200, 202), repaired.text
        remote.whole(repaired.json()["id"])
        assert remote.http.get(f"/artifacts/{name}/raw").status_code == 200, "the old record reads again too"


def test_a_database_that_another_process_locks_only_delays(remote: Remote) -> None:
    picture = remote.picture()
    other = sqlite3.connect(remote.server.data / "fanlight.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(3, other.execute, ["COMMIT"]).start()
    began = time.monotonic()
    assert remote.http.get("/explanations").status_code == 200, "reading goes on"
    assert time.monotonic() - began < 2
    ident = remote.promise(input=picture)
    assert time.monotonic() - began > 2
    remote.whole(ident)
    other.close()


def test_a_stream_that_was_cut_loses_no_event(remote: Remote) -> None:
    before = remote.events()
    remote.whole(remote.promise())
    first = remote.events()[len(before) :]
    assert remote.stream(before[-1] if before else 0, 1) == first[:1], "cut after the first"
    for _ in range(3):
        remote.whole(remote.promise())
    expected = [i for i in remote.events() if i > first[0]]
    assert remote.stream(first[0], len(expected)) == expected
