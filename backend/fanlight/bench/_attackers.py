"""Who sends the requests of `bench fuzz`, and what is kept of the answers."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

PATIENCE = 30.0  # seconds after which a request counts as hanging; `?wait=` asks for 30 at most
STREAM = "/api/v1/events"
TRACE = re.compile(r"Traceback \(most recent call last\)|site-packages/|File \"/")


@dataclass
class Seen:
    """What came of all requests."""

    sent: Counter[str] = field(default_factory=Counter)
    """By who asked and how: "editor schema", "anonymous bytes", ..."""
    statuses: Counter[int] = field(default_factory=Counter)
    operations: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    silences: list[str] = field(default_factory=list)
    """Well-formed requests whose connection was closed without an answer."""
    slowest: float = 0.0

    def answer(self, what: str, status: int, body: str, seconds: float) -> None:
        self.statuses[status] += 1
        self.slowest = max(self.slowest, seconds)
        if status >= 500:
            self.errors.append(f"{what}: {status} {body[:300]}")
        if TRACE.search(body):
            self.traces.append(f"{what}: {body[:300]}")


@dataclass
class Attacker:
    """Args: name: for the count; http: a client with its credentials; port: of the server on loopback."""

    name: str
    http: httpx.Client
    port: int
    seen: Seen

    def send(self, kind: str, method: str, path: str, **more: Any) -> None:
        """One request of a library. What the library itself refuses to send is not counted."""
        what = f"{self.name} {kind}: {method} {path}"[:300]
        begun = time.monotonic()
        try:
            request = self.http.build_request(method, path, **more)
            request.read()
        except (ValueError, TypeError, UnicodeError, AttributeError, httpx.InvalidURL):
            return
        self.seen.sent[f"{self.name} {kind}"] += 1
        try:
            answer = self.http.send(request, stream=True)
            body = b"" if self._streams(answer) else answer.read()
            answer.close()
            self.seen.answer(what, answer.status_code, body.decode(errors="replace"), time.monotonic() - begun)
        except httpx.TimeoutException:
            self.seen.hangs.append(what)
        except httpx.LocalProtocolError:
            self.seen.sent[f"{self.name} {kind}"] -= 1
        except httpx.TransportError as e:
            self.seen.silences.append(f"{what}: {type(e).__name__} {e}")

    @staticmethod
    def _streams(answer: httpx.Response) -> bool:
        """A stream of news has no end; that it begins is enough."""
        return str(answer.headers.get("content-type", "")).startswith("text/event-stream")

    def shout(self, kind: str, raw: bytes) -> None:
        """These very bytes. The server may close without an answer, but it must do one or the other."""
        what = f"{self.name} {kind}: {raw[:200]!r}"
        self.seen.sent[f"{self.name} {kind}"] += 1
        begun = time.monotonic()
        got = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
                s.sendall(raw)
                with contextlib.suppress(OSError):  # it may have closed already
                    s.shutdown(socket.SHUT_WR)
                while more := s.recv(2**16):
                    got += more
                    if len(got) > 2**20 or b"text/event-stream" in got:
                        break
        except TimeoutError:
            self.seen.hangs.append(what)
            return
        except OSError:  # reset: an end as good as another
            pass
        status = re.match(rb"HTTP/1\.[01] (\d{3})", got)
        if status is not None:
            self.seen.answer(what, int(status[1]), got.decode(errors="replace"), time.monotonic() - begun)
