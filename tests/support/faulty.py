"""A proxy on loopback in front of a store that answers over HTTP, with the faults of networks: errors, slowness, answers that get lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


class Faulty:
    """Args: upstream: address of the store. `faults`: number of a writing request (from 1) -> what comes of it:
    "" passes; "500" and "503" are answered without asking the store; "slow" is passed on after `pause`; "lost" is passed on, its answer is not."""

    def __init__(self, upstream: str, pause: float = 2.0):
        self.upstream, self.pause = upstream, pause
        self.faults: dict[int, str] = {}
        self.every = ""
        """A fault of all requests, reading too."""
        self.seen: Counter[str] = Counter()
        self._writes, self._lock = 0, threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                outer.handle(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _any

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def handle(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers.get("content-length", 0)))
        with self._lock:
            fault = self.every
            if asked.command == "PUT":
                self._writes += 1
                fault = self.faults.get(self._writes, self.every)
            self.seen[fault] += 1
        if fault in ("500", "503"):
            return self._answer(asked, int(fault), {}, b"")
        if fault == "slow":
            time.sleep(self.pause)
        headers = {
            k: v
            for k, v in asked.headers.items()
            if k.lower() not in ("content-length", "connection", "accept-encoding")
        }
        answer = httpx.request(
            asked.command, self.upstream + asked.path, headers=headers, content=body, timeout=30, trust_env=False
        )
        if fault == "lost":
            asked.close_connection = True
            asked.connection.close()
            return None
        kept = {
            k: v
            for k, v in answer.headers.items()
            if k not in ("content-length", "connection", "transfer-encoding", "content-encoding", "date")
        }
        if asked.command == "HEAD" and "content-length" in answer.headers:
            kept["content-length"] = answer.headers["content-length"]
        return self._answer(asked, answer.status_code, kept, answer.content)

    def _answer(self, asked: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
        asked.send_response(status)
        for name, value in headers.items():
            asked.send_header(name, value)
        if "content-length" not in headers:
            asked.send_header("content-length", str(len(body)))
        asked.end_headers()
        asked.wfile.write(body)
