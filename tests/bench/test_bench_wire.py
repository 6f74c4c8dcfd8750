"""The client of the load benchmarks against a server that says exactly what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import pytest

from fanlight.bench._wire import NoAnswer, Wire

Said = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def _asked(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(v.split(b":")[1]) for v in head.split(b"\r\n") if v.startswith(b"content-length")), 0)
    return head, await reader.readexactly(length)


def talk(said: Said, talks: Callable[[Wire], Awaitable[None]], patience: float = 5.0) -> int:
    """How many connections were opened."""
    opened = 0

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        try:
            await said(reader, writer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        try:
            async with Wire(f"http://{host}:{port}/api", {"authorization": "Bearer x"}, patience) as wire:
                await talks(wire)
        finally:
            server.close()

    asyncio.run(run())
    return opened


def test_one_connection_serves_requests_that_follow_each_other_and_bodies_of_every_form() -> None:
    seen: list[tuple[bytes, bytes]] = []
    answers = [
        GOOD,
        b"HTTP/1.1 409 Conflict\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        GOOD,
    ]

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            seen.append(await _asked(reader))
            for n in range(0, len(answer), 7):  # in pieces
                writer.write(answer[n : n + 7])
                await writer.drain()

    async def talks(wire: Wire) -> None:
        assert await wire.post("/live", {"a": 1}) == (200, b"ok")
        assert (await wire.get("/e", {"limit": 3})).text == "abcde"
        assert await wire.get("/e") == (304, b"")
        assert await wire.get("/e") == (200, b"ok")

    assert talk(said, talks) == 1
    heads = [head for head, _ in seen]
    assert heads[0].startswith(b"POST /api/live HTTP/1.1\r\n") and b"authorization: Bearer x\r\n" in heads[0]
    assert orjson.loads(seen[0][1]) == {"a": 1} and heads[1].startswith(b"GET /api/e?limit=3 HTTP/1.1\r\n")


def test_requests_at_once_have_connections_of_their_own_and_share_them_later() -> None:
    both = asyncio.Event()
    waiting = 0

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        while True:
            await _asked(reader)
            waiting += 1
            if waiting == 2:
                both.set()
            await both.wait()
            writer.write(GOOD)

    async def talks(wire: Wire) -> None:
        await asyncio.gather(wire.get("/a"), wire.get("/b"))
        await wire.get("/c")
        await wire.get("/d")

    assert talk(said, talks) == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [(b"", "closed"), (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", "closed"), (b"what?\r\n\r\n", "no HTTP")],
)
def test_what_is_no_whole_answer_is_an_error_and_the_next_request_connects_again(answer: bytes, why: str) -> None:
    turns = iter([answer, GOOD])

    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _asked(reader)
        writer.write(next(turns))
        await writer.drain()

    async def talks(wire: Wire) -> None:
        with pytest.raises(NoAnswer, match=why):
            await wire.get("/a")
        assert (await wire.get("/a")).status_code == 200

    assert talk(said, talks) == 2


def test_an_answer_that_does_not_come_is_waited_for_only_so_long() -> None:
    async def said(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _asked(reader)
        await asyncio.sleep(0.5)
        writer.write(GOOD)

    async def talks(wire: Wire) -> None:
        with pytest.raises(NoAnswer):
            await wire.get("/slow")

    assert talk(said, talks, patience=0.1) == 1


def test_where_nobody_listens_is_an_error() -> None:
    async def run() -> None:
        async with Wire("http://127.0.0.1:1", {}) as wire:
            with pytest.raises(NoAnswer):
                await wire.get("/")

    asyncio.run(run())
