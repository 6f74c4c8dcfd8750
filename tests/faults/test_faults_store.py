"""A store that is slow, answers 500 or loses its answer after it has done what was asked, and a log that cannot be written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults_client import Remote, file_limit

from fanlight.artifact import digest
from fanlight.bench._history import History, settle
from fanlight.blobs import Blobs
from fanlight.errors import Unavailable
from support.faulty import Faulty
from support.s3 import Bucket


@pytest.fixture
def faulty(s3_bucket: Bucket) -> Iterator[Faulty]:
    made = Faulty(s3_bucket.env["AWS_ENDPOINT_URL"])
    yield made
    made.close()


@pytest.fixture
def blobs(faulty: Faulty, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    for name, value in {**s3_bucket.env, "AWS_ENDPOINT_URL": faulty.url}.items():
        monkeypatch.setenv(name, value)
    return Blobs(s3_bucket.url)


@pytest.mark.parametrize("fault", ["500", "503", "slow", "lost"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_fault_of_one_write_costs_nothing(blobs: Blobs, faulty: Faulty, fault: str, at: int) -> None:
    """Put if absent under the digest: an answer that was lost is asked for again, and finds what it had put."""
    faulty.faults = {at: fault}
    stored = [(bytes([n]) * 1000, blobs.put(bytes([n]) * 1000)) for n in range(4)]
    assert faulty.seen[fault] >= 1, "the fault happened"
    for blob, name in stored:
        assert name == digest(blob) and blobs.get(name) == blob
    assert sorted(b.name for b in blobs.listed()) == sorted(name for _, name in stored), (
        "nothing twice, nothing in part"
    )


def test_a_store_that_stays_broken_is_a_sentence_and_works_again_afterwards(blobs: Blobs, faulty: Faulty) -> None:
    kept = blobs.put(b"before")
    faulty.every = "500"
    with pytest.raises(Unavailable) as caught:
        blobs.put(b"meanwhile")
    assert caught.value.code == "store_unavailable" and caught.value.status == 503
    faulty.every = ""
    assert blobs.get(kept) == b"before" and blobs.get(blobs.put(b"meanwhile")) == b"meanwhile"


def test_many_who_put_the_same_through_faults_put_it_once(blobs: Blobs, faulty: Faulty) -> None:
    faulty.faults = {n: ("lost", "500", "slow", "")[n % 4] for n in range(1, 40)}
    faulty.pause = 0.3
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda _: blobs.put(b"the same"), range(16)))
    assert names == {digest(b"the same")} and [b.name for b in blobs.listed()] == list(names)


@pytest.mark.slow
def test_a_server_on_such_a_store_keeps_what_it_promised(
    start: Callable[..., Remote], faulty: Faulty, s3_bucket: Bucket
) -> None:
    """The promises are recorded outside and held against the server afterwards: nothing lost, doubled, changed or in part."""
    env = {**s3_bucket.env, "AWS_ENDPOINT_URL": faulty.url}
    remote = start(artifacts_url=s3_bucket.url, env=env)
    history = History()
    pictures = [remote.picture() for _ in range(3)]
    faulty.pause = 0.3
    faulty.faults = {n: ("500", "", "lost", "", "slow", "503")[n % 6] for n in range(1, 400)}
    for seed in range(12):
        request = {"model": "tiny", "explainer": "saliency", "input": pictures[seed % 3], "seed": seed}
        answer = remote.http.post("/explanations", json=request)
        assert answer.status_code in (200, 202), answer.text
        history.promise(answer.json()["id"], request)
    settle(remote.http, history, list(history.accepted), 120)
    assert not history.problems, history.remarks
    assert len(history.results) == 12 and faulty.seen["lost"] and faulty.seen["500"]


def test_a_log_that_cannot_be_written_costs_nobody_an_answer(start: Callable[..., Remote]) -> None:
    remote = start()
    picture = remote.picture()
    os.truncate(remote.server.log, 64 * 2**20)  # sparse; what is appended lies beyond the limit
    with file_limit(remote.server.pid, 32 * 2**20):
        for seed in range(3):
            remote.whole(remote.promise(input=picture, seed=seed))
        assert remote.http.delete("/shares/none").status_code == 404
    time.sleep(0.2)
    remote.whole(remote.promise(input=picture, seed=9))
