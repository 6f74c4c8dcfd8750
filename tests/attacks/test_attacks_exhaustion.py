"""Nobody takes a place from everybody: streams, logins, jobs; what is taken is given back; and what happens twice at once happens once."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from attacks_rig import PASSWORD, SETTINGS, Raw, Target, model, noise, sentence

from fanlight.service.bus import OF_ONE, STREAMS
from fanlight.service.entry import OF_ONE as FAILURES, WAITING
from support.processes import FanlightServer


class Streams:
    """Connections that ask for the news and stay."""

    def __init__(self, target: Target):
        self.target, self.open = target, []  # type: ignore[var-annotated]

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for s in self.open:
            s.close()

    def ask(self, count: int, **headers: str) -> Counter[int]:
        """Asks all at once; how often each status came."""
        given = {"host": "127.0.0.1", "authorization": f"Bearer {self.target.server.token}", **headers}
        lines = "".join(f"{k}: {v}\r\n" for k, v in given.items() if v)
        asked = []
        for _ in range(count):
            s = socket.create_connection(("127.0.0.1", self.target.server.port), timeout=30)
            asked.append(s)
            self.open.append(s)
        for s in asked:
            s.sendall(f"GET /api/v1/events HTTP/1.1\r\n{lines}\r\n".encode())
        return Counter(int(s.recv(2**12).split(b" ")[1]) for s in asked)

    def room(self, patience: float = 20) -> None:
        """Waits until the server has noticed that the others are gone."""
        end = time.monotonic() + patience
        while self.ask(1) != {200: 1}:
            assert time.monotonic() < end, "the places of streams that ended are not given back"
            time.sleep(0.2)


def test_one_person_has_a_share_of_the_streams_and_others_still_get_theirs(target: Target) -> None:
    with (
        Streams(target) as mine,
        Streams(target) as theirs,
        contextlib.closing(target.account("stream-1", "lab", "viewer")) as other,
    ):
        cookie = "; ".join(f"{k}={v}" for k, v in other.cookies.items())
        found = mine.ask(OF_ONE + 20)
        assert found == {200: OF_ONE, 429: 20}, "asked for at once, no more than the limit got in"
        refused = target.http.get("/api/v1/events")
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
        assert "streams" in sentence(refused)
        assert theirs.ask(1, cookie=cookie, authorization="") == {200: 1}
        assert target.http.get("/api/v1/models").status_code == 200, "everything else is answered as before"
    with Streams(target) as again:
        again.room()


def test_all_streams_together_are_bounded_however_many_ask_at_once(target: Target) -> None:
    people = [target.account(f"stream-{n}", "lab", "viewer") for n in range(2, 2 + STREAMS // OF_ONE + 1)]
    with Streams(target) as streams:
        found: Counter[int] = Counter()
        for person in people:
            cookie = "; ".join(f"{k}={v}" for k, v in person.cookies.items())
            found += streams.ask(OF_ONE, cookie=cookie, authorization="")
        assert found[200] == STREAMS and set(found) == {200, 429}, found
        assert target.http.get("/healthz").status_code == 200
        assert target.explain(input=target.picture, seed=5)["state"] == "succeeded"
    for person in people:
        person.close()
    with Streams(target) as again:
        again.room()


def test_a_stream_that_is_not_read_costs_nobody_anything(target: Target) -> None:
    with Streams(target) as streams:
        assert streams.ask(OF_ONE // 2) == {200: OF_ONE // 2}
        for seed in range(30):  # news for all of them, which none reads
            target.explain(input=target.picture, seed=1000 + seed)
        begun = time.monotonic()
        assert target.http.get("/api/v1/models").status_code == 200
        assert time.monotonic() - begun < 2


# --- logins


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Target]:
    """A server of its own: who failed here must wait."""
    server = FanlightServer(tmp_path, **SETTINGS, models=model(tmp_path))
    server.start()
    with httpx.Client(base_url=server.url, headers=server.headers, timeout=60, trust_env=False) as http:
        yield Target(server, http)
    server.stop(patience=15)


def test_guessing_at_once_is_no_way_around_the_limit(door: Target) -> None:
    """Sixty passwords of one name, all sent before the first was compared."""
    door.account("ann", "lab", "viewer").close()

    def guess(n: int) -> int:
        with door.browser() as http:
            return http.post("/login", data={"name": "ann", "password": f"guess number {n}"}).status_code

    with ThreadPoolExecutor(60) as pool:
        found = Counter(pool.map(guess, range(60)))
    assert set(found) == {401, 429}, found
    assert found[401] <= FAILURES + 2, "compared beyond the limit"
    with door.browser() as http:
        late = http.post("/login", data={"name": "ann", "password": PASSWORD})
        assert late.status_code == 429, "even the right one waits"
        for name in ("ANN", " ann ", "ann\t", "Ａnn"):
            assert http.post("/login", data={"name": name, "password": PASSWORD}).status_code in (401, 429), name
    with door.browser(headers={"x-forwarded-for": "10.1.2.3", "forwarded": "for=10.1.2.3"}) as http:
        assert http.post("/login", data={"name": "ann", "password": PASSWORD}).status_code == 429


def test_a_crowd_at_the_door_is_told_to_come_back_and_nobody_else_waits(door: Target) -> None:
    door.account("bob", "lab", "viewer").close()

    def knock(n: int) -> int:
        with door.browser() as http:
            return http.post("/login", data={"name": f"nobody-{n}", "password": "x" * 1000}).status_code

    with ThreadPoolExecutor(80) as pool:
        knocking = [pool.submit(knock, n) for n in range(80)]
        time.sleep(0.2)
        begun = time.monotonic()
        assert door.http.get("/api/v1/models").status_code == 200
        assert time.monotonic() - begun < 5, "who is in waits for those who are not"
        found = Counter(k.result() for k in knocking)
    assert set(found) <= {401, 429} and found[429] >= 80 - WAITING - 40, found


def test_the_token_is_not_guessed_in_any_number(target: Target) -> None:
    """256 bits, compared in constant time; a wrong one costs the server no more than any request."""
    with target.browser() as http:
        statuses = Counter(http.post("/login", data={"token": f"{n:064x}"}).status_code for n in range(200))
    assert statuses == {401: 200}


# --- twice at once


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [f.result() for f in [pool.submit(c) for c in calls]]


def test_what_is_deleted_revoked_or_cancelled_many_times_at_once_is_so_once(target: Target) -> None:
    picture = target.upload(noise(500)).json()["id"]
    body = {"model": "tiny", "explainer": "kernel-shap", "input": picture, "params": {"samples": 4096, "patch": 8}}
    asked = target.call("POST", "/explanations", json=body).json()
    cancelled = at_once([lambda: target.call("DELETE", f"/jobs/{asked['job']}").status_code] * 12)
    assert set(cancelled) <= {200, 404, 409} and 200 in cancelled
    record = target.explain(input=picture)
    shared = at_once([lambda: target.call("POST", "/shares", json={"explanations": [record["id"]]})] * 8)
    assert [a.status_code for a in shared] == [201] * 8 and len({a.json()["token"] for a in shared}) == 8
    one = shared[0].json()
    revoked = at_once([lambda: target.call("DELETE", f"/shares/{one['id']}").status_code] * 12)
    assert set(revoked) <= {200, 404}
    gone = at_once([lambda: target.call("DELETE", f"/explanations/{record['id']}").status_code] * 12)
    assert Counter(gone)[200] == 1 and set(gone) == {200, 404}
    for share in shared:
        with target.browser() as http:
            assert http.get(f"/s/{share.json()['token']}").status_code == 404


def test_a_share_that_is_revoked_while_it_is_read_ends_with_the_revocation(target: Target) -> None:
    record = target.explain(input=target.picture, seed=31)
    share = target.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    seen: list[tuple[float, int]] = []
    with ThreadPoolExecutor(6) as pool, contextlib.ExitStack() as stack:

        def look(_: int) -> None:
            http = stack.enter_context(target.browser())
            end = time.monotonic() + 2
            while time.monotonic() < end:
                asked = time.monotonic()
                seen.append((asked, http.get(f"/s/{share['token']}/0/overlay.png").status_code))

        looking = [pool.submit(look, n) for n in range(6)]
        time.sleep(0.7)
        assert target.call("DELETE", f"/shares/{share['id']}").status_code == 200
        revoked = time.monotonic()
        for one in looking:
            one.result()
    assert {s for _, s in seen} == {200, 404}
    assert {s for asked, s in seen if asked > revoked} == {404}, "asked for after the revocation was answered"


def test_a_name_is_given_once_however_many_ask_for_it_at_once(target: Target) -> None:
    body = {"name": "twin", "password": PASSWORD, "operator": False}
    made = at_once([lambda: target.call("POST", "/people", json=body).status_code] * 10)
    assert Counter(made)[201] == 1 and set(made) <= {201, 409, 429}
    spaces = at_once([lambda: target.call("POST", "/workspaces", json={"id": "twin", "name": "x"}).status_code] * 10)
    assert Counter(spaces) == {201: 1, 409: 9}


def test_answers_of_two_who_ask_at_once_are_each_their_own(target: Target) -> None:
    """No buffer, hook or context of one request shows in another's answer."""
    pictures = [target.upload(noise(600 + n)).json()["id"] for n in range(6)]
    alone = {p: target.explain(input=p)["prediction"] for p in pictures}
    for p in pictures:
        shown = target.call("GET", f"/inputs/{p}/image.png").content
        again = at_once([lambda q=q: target.call("GET", f"/inputs/{q}/image.png") for q in pictures * 4])  # type: ignore[misc]
        assert [a.content == shown for a, q in zip(again, pictures * 4, strict=True)] == [q == p for q in pictures * 4]
    asked = at_once([lambda q=q: target.explain(input=q, seed=9) for q in pictures * 3])  # type: ignore[misc]
    for record, p in zip(asked, pictures * 3, strict=True):
        assert record["input"] == p
        for a, b in zip(record["prediction"], alone[p], strict=True):
            assert a["index"] == b["index"] and abs(a["probability"] - b["probability"]) < 1e-4


def test_a_request_in_two_halves_is_one_and_two_in_one_are_two(target: Target) -> None:
    """What two programs in a row would take apart differently (request smuggling) is refused or answered as one reads it."""
    enter = f"host: 127.0.0.1\r\nauthorization: Bearer {target.server.token}\r\n".encode()
    hidden = b"GET /api/v1/me HTTP/1.1\r\n" + enter + b"\r\n"
    for lines in (b"content-length: 0\r\ntransfer-encoding: chunked\r\n", b"transfer-encoding: chunked\r\ncontent-length: 6\r\n",
                  b"transfer-encoding : chunked\r\n", b"transfer-encoding: xchunked\r\n", b"transfer-encoding: chunked, identity\r\n",
                  b"content-length: +1\r\n", b"content-length: 0x1\r\n", b"content-length: 1 1\r\n"):  # fmt: skip
        body = b"0\r\n\r\n" + hidden
        answer: Raw = target.raw(b"POST /api/v1/shares HTTP/1.1\r\n" + enter + lines + b"\r\n" + body, wait=False)
        assert answer.status in (0, 400, 411, 415, 422), (lines, answer.status)
        assert b'"principal"' not in answer.body
