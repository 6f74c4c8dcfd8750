"""More requests than the server can take: a burst waits, a lasting overload is refused at once, and what must not be refused is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, noise, settings, started
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from fanlight.api import overload
from fanlight.api.overload import Overload, Seats
from fanlight.app import create
from fanlight.errors import BadRequest, TooBusy
from fanlight.service.live import Live

Ask = Callable[..., Awaitable[list[Message]]]


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def asker(app: Overload) -> Ask:
    async def ask(path: str = "/api/v1/models", method: str = "GET", accept: bytes = b"*/*") -> list[Message]:
        said: list[Message] = []

        async def send(message: Message) -> None:
            said.append(message)

        scope = {"type": "http", "method": method, "path": path, "headers": [(b"accept", accept)]}
        await app(scope, _nothing, send)
        return said

    return ask


class Slow:
    """Answers one request after another. Args: seconds: that each takes."""

    def __init__(self, seconds: float):
        self.seconds, self.most, self.now = seconds, 0, 0
        self._one = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            async with self._one:
                await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def _arrive(ask: Ask, rate: float, seconds: float) -> list[tuple[float, int, float]]:
    """(when, status, how long it took) of requests that arrive evenly and wait for nobody."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    async def one(due: float) -> tuple[float, int, float]:
        await asyncio.sleep(max(0.0, begun + due - loop.time()))
        start = loop.time()
        said = await ask()
        return due, said[0]["status"], loop.time() - start

    return await asyncio.gather(*(one(n / rate) for n in range(int(rate * seconds))))


def test_a_burst_waits_and_nobody_is_refused() -> None:
    async def run() -> None:
        app = Slow(0.005)
        ask = asker(Overload(app, 3))
        answers = await asyncio.gather(*(ask() for _ in range(60)))
        assert {said[0]["status"] for said in answers} == {200} and app.most == 3

    asyncio.run(run())


def test_what_is_accepted_of_twice_the_load_is_fast_and_the_rest_is_refused_at_once_until_it_is_over() -> None:
    async def run() -> None:
        middleware = Overload(Slow(0.02), 3)
        ask = asker(middleware)
        answers = await _arrive(ask, 100, 7)
        late = [(status, took) for due, status, took in answers if due > 5]  # after the seconds that tell a burst
        good = sorted(took for status, took in late if status == 200)
        refused = sorted(took for status, took in late if status == 429)
        assert {status for status, _ in late} == {200, 429} and middleware.seats.pressed
        assert len(good) > 0.2 * len(late), "seats are not left empty"
        # Some ten times what it is alone on a machine; without refusals the last would wait for three seconds.
        assert good[int(0.95 * len(good))] < 1 and refused[int(0.95 * len(refused))] < 0.5
        await _arrive(ask, 20, 2.5)
        assert not middleware.seats.pressed
        assert {status for _, status, _ in await _arrive(ask, 20, 0.5)} == {200}
        assert middleware.seats.taken == 0 and middleware.seats.waiting == 0

    asyncio.run(run())


def test_a_refusal_is_a_sentence_with_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "PATIENCE", 0.02)

    async def run() -> None:
        ask = asker(Overload(Slow(0.2), 1))
        first = asyncio.create_task(ask())
        await asyncio.sleep(0.01)
        head, body = await ask()
        headers = dict(head["headers"])
        error = json.loads(body["body"])["error"]
        assert head["status"] == 429 and 1 <= int(headers[b"retry-after"]) <= 3
        assert error["code"] == "too_busy" and error["message"].endswith(".") and "Try again" in error["hint"]
        assert int(headers[b"content-length"]) == len(body["body"])
        head, body = await ask(method="HEAD")
        assert head["status"] == 429 and body["body"] == b""
        head, body = await ask("/s/abc", accept=b"text/html,*/*")
        assert dict(head["headers"])[b"content-type"].startswith(b"text/plain") and b"more requests" in body["body"]
        await first

    asyncio.run(run())


@pytest.mark.parametrize("prefix", ["", "/fanlight"])
def test_probes_files_streams_and_pages_are_never_refused(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "PATIENCE", 0.02)

    async def run() -> None:
        middleware = Overload(Slow(0.0), 1, prefix)
        ask = asker(middleware)
        middleware.seats.take()
        free = (
            "/healthz",
            "/readyz",
            "/metrics",
            "/assets/app.css",
            "/_dash-component-suites/a.js",
            "/login",
            "/api/v1/events",
        )
        for path in (*free, "/", "/e/abc", "/_dash-update-component"):
            assert (await ask(prefix + path))[0]["status"] == 200, path
        for path in ("/api/v1/models", "/api/nope", "/s/abc", "/api/v1/events/x"):
            assert (await ask(prefix + path))[0]["status"] == 429, path

    asyncio.run(run())


def test_what_a_page_asks_inside_its_own_request_needs_no_seat_of_its_own() -> None:
    async def run() -> None:
        inner: list[int] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/_dash-update-component":
                inner.append((await ask("/api/v1/models"))[0]["status"])
            await send({"type": "http.response.start", "status": 200, "headers": []})

        middleware = Overload(app, 1)
        ask = asker(middleware)
        await asyncio.gather(*(ask("/_dash-update-component") for _ in range(5)))
        assert inner == [200] * 5 and middleware.seats.taken == 0

    asyncio.run(run())


def test_who_waits_for_something_else_leaves_the_seat_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(says: bool) -> float:
        over = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/api/wait":
                if says:
                    overload.idle()
                await over.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        middleware = Overload(app, 1)
        ask = asker(middleware)
        waiting = asyncio.create_task(ask("/api/wait"))
        await asyncio.sleep(0.01)
        begun = asyncio.get_running_loop().time()
        assert (await ask())[0]["status"] == 200
        took = asyncio.get_running_loop().time() - begun
        over.set()
        await waiting
        assert middleware.seats.taken == 0, "a seat is given back once"
        return took

    assert asyncio.run(run(says=True)) < overload.AWAY / 2
    monkeypatch.setattr(overload, "AWAY", 0.1)
    assert 0.05 < asyncio.run(run(says=False)) < 1


def test_where_all_are_slow_no_more_than_some_are_let_in_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "AWAY", 0.02)
    monkeypatch.setattr(overload, "PATIENCE", 0.3)

    async def run() -> None:
        app = Slow(5.0)
        middleware = Overload(app, 1)
        waiting = [asyncio.create_task(asker(middleware)()) for _ in range(10)]
        await asyncio.sleep(0.6)
        assert app.now == 1 + overload.BESIDE
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (middleware.seats.taken, middleware.seats.beside, middleware.seats.waiting) == (0, 0, 0)

    asyncio.run(run())


def test_a_client_that_is_slow_to_send_keeps_no_seat_from_others() -> None:
    async def run() -> None:
        sent = asyncio.Event()

        async def slowly() -> Message:
            await sent.wait()
            return await _nothing()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "POST":
                await receive()
                assert middleware.seats.taken == 1, "counted again once it is worked on"
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def ignored(_: Message) -> None:
            return

        middleware = Overload(app, 1)
        scope = {"type": "http", "method": "POST", "path": "/api/v1/inputs", "headers": []}
        slow = asyncio.create_task(middleware(scope, slowly, ignored))
        await asyncio.sleep(0.01)
        assert (await asker(middleware)())[0]["status"] == 200 and not slow.done()
        sent.set()
        await slow
        assert middleware.seats.taken == 0

    asyncio.run(run())


def test_a_seat_is_free_again_whatever_ended_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            raise ValueError("broken")

        middleware = Overload(app, 1)
        with pytest.raises(ValueError, match="broken"):
            await asker(middleware)()
        assert middleware.seats.taken == 0

        seats = Seats(1)
        seat = await seats.enter()
        gone = [asyncio.create_task(seats.enter()) for _ in range(3)]
        await asyncio.sleep(0.01)
        gone[0].cancel()
        await asyncio.sleep(0.01)
        assert seats.waiting == 2
        seat.close()
        gone[1].cancel()  # it has just been given the seat, which goes on to the next
        (await gone[2]).close()
        with pytest.raises(asyncio.CancelledError):
            await gone[1]
        assert seats.taken == 0 and seats.waiting == 0
        kept = await seats.enter()
        monkeypatch.setattr(overload, "PATIENCE", 0.05)
        with pytest.raises(TooBusy):
            await seats.enter()
        kept.close()
        assert seats.taken == 0 and seats.waiting == 0

    asyncio.run(run())


def test_the_server_refuses_before_it_looks_who_asks_and_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create(settings(tmp_path, request_limit=1), token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        started(http)

        def refused() -> int:
            text = http.get("/metrics").text
            return int(float(next(v.split()[1] for v in text.splitlines() if v.startswith("fanlight_too_busy_total"))))

        monkeypatch.setattr(overload, "PATIENCE", 0.02)
        before = refused()
        seats: Seats = _found(app.middleware_stack).seats
        seats.taken += 1
        wrong = {"Authorization": "Bearer fl_" + "a" * 60}  # would be refused after a look at the database
        answers = [http.get("/api/v1/explanations", headers=wrong) for _ in "abc"]
        assert {a.status_code for a in answers} == {429}
        assert all(a.headers["x-request-id"] and int(a.headers["retry-after"]) for a in answers)
        seats.taken -= 1
        assert refused() == before + 3
        assert http.get("/api/v1/explanations", headers=wrong).status_code == 401
        picture = http.post("/api/v1/inputs", files={"file": ("a.png", noise(1))}).json()["id"]
        body = {"model": "tiny", "explainer": "saliency", "input": picture}
        assert http.post("/api/v1/explanations", params={"wait": 20}, json=body).status_code == 200
        assert refused() == before + 3 and seats.taken == 0


def test_people_who_drag_wait_in_a_line_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create(settings(tmp_path, request_limit=1), token=TOKEN, pages=False)
    taken: list[int] = []

    async def waits(self: Live, visitor: Any, request: Any) -> Any:
        taken.append(_found(app.middleware_stack).seats.taken)
        raise BadRequest("Waited.", code="waited")

    monkeypatch.setattr(Live, "answer", waits)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        body = {"session": "a", "explanation": "0" * 20, "edits": [], "seq": 1}
        said = http.post("/api/v1/live", json=body)
        assert said.json()["error"]["code"] == "waited" and taken == [0], said.text


def _found(stack: Any) -> Overload:
    while not isinstance(stack, Overload):
        stack = stack.app
    return stack
