"""HTTP/1.1 at a fraction of the cost of a whole client: load that is made beside the server must leave the machine to it.

Connections are kept, one request on each at a time; of those that are free, the last used is next. No redirects, cookies, proxies or TLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

import httptools
import orjson

PATIENCE = 30.0  # seconds after which a request without an answer is an error


class NoAnswer(OSError):
    """The connection broke or the answer did not come in time."""


class Answer(NamedTuple):
    status_code: int
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


class Wire:
    """Args: base: address that every path is appended to; headers: of every request; patience: seconds for an answer."""

    def __init__(self, base: str, headers: Mapping[str, str], patience: float = PATIENCE):
        at = urlsplit(base)
        self._place, self._patience = (at.hostname or "", at.port or 80), patience
        self._prefix = at.path.rstrip("/")
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._head = f" HTTP/1.1\r\nhost: {at.netloc}\r\naccept: */*\r\n{lines}"
        self._free: list[_Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._free:
            self._free.pop().close()

    async def get(self, path: str, params: Mapping[str, Any] | None = None) -> Answer:
        return await self._ask("GET", path + (f"?{urlencode(params)}" if params else ""), b"")

    async def post(self, path: str, json: Any) -> Answer:
        return await self._ask("POST", path, orjson.dumps(json))

    async def _ask(self, method: str, path: str, body: bytes) -> Answer:
        """Errors: NoAnswer."""
        content = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        asked = f"{method} {self._prefix}{path}{self._head}{content}\r\n".encode() + body
        try:
            async with asyncio.timeout(self._patience):
                connection = self._free.pop() if self._free else await self._connected()
                answer = await connection.ask(asked)
        except OSError as e:
            raise NoAnswer(str(e) or type(e).__name__) from e
        if connection.kept:
            self._free.append(connection)
        return answer

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(lambda: _Connection(self._gone), *self._place))[1]

    def _gone(self, connection: _Connection) -> None:
        if connection in self._free:
            self._free.remove(connection)


class _Connection(asyncio.Protocol):
    """Also what its parser calls back."""

    def __init__(self, gone: Any):
        self._gone = gone
        self._answer: asyncio.Future[Answer] | None = None
        self._body = bytearray()
        self.kept = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._parser = httptools.HttpResponseParser(self)

    async def ask(self, asked: bytes) -> Answer:
        """Errors: OSError. Given up, it closes: what still comes would answer the next request."""
        self._answer = asyncio.get_running_loop().create_future()
        self._body.clear()
        self._transport.write(asked)
        try:
            return await self._answer
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.kept = False
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as e:
            self._fail(OSError(f"That is no HTTP: {e}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.kept = False
        self._gone(self)
        self._fail(error or OSError("The connection was closed."))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self.kept = self.kept and self._parser.should_keep_alive()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), bytes(self._body)))
