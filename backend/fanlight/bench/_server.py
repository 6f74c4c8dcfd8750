"""A server for a benchmark: a program of its own on a free loopback port, stopped with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from fanlight.errors import FanlightError

TOKEN = "benchmark"
PATIENCE = 180.0  # seconds until a server must answer


@dataclass
class Server:
    """A running program. Args: url: without a trailing slash; began: `time.monotonic()` of its start; log: what it printed."""

    url: str
    process: subprocess.Popen[bytes]
    began: float
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}

    def path(self, page: str) -> str:
        """The address of a page that lets a browser in."""
        return f"{self.url}{page}?token={TOKEN}"

    def until(self, path: str) -> None:
        """Waits until `path` answers 200."""
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(self.url + path, timeout=5, trust_env=False).status_code == 200:
                    return
            self.check()
            time.sleep(0.05)

    def check(self) -> None:
        """Raises where the program has ended or has had its time."""
        ended = self.process.poll() is not None
        if ended or time.monotonic() - self.began > PATIENCE:
            said = self.log.read_text(errors="replace")[-1500:]
            raise FanlightError(
                f"The server {'ended' if ended else 'was not ready in time'}. It said: {said}", code="no_server"
            )


@contextlib.contextmanager
def program(command: Sequence[str], port: int, log: Path, env: Mapping[str, str]) -> Iterator[Server]:
    """Starts a program that will listen on `port`; ends it and what it started when the context closes."""
    # a server for a benchmark has the settings that the benchmark says, not those of this shell
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FANLIGHT_")}
    with log.open("ab") as out:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**inherited, **env}, start_new_session=True
        )
    before = signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # so that what follows `yield` is done
    try:
        yield Server(f"http://127.0.0.1:{port}", process, began, log)
    finally:
        signal.signal(signal.SIGTERM, before)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def fanlight(folder: Path, *, wait: bool = True, **settings: object) -> Iterator[Server]:
    """`fanlight serve` with its data in `folder`. Settings are keywords: `trust="request"` sets FANLIGHT_TRUST."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fanlight.cli", "serve", "--port", str(port)]
    command += ["--data-dir", str(folder / "data"), "--no-browser"]
    env = {
        f"FANLIGHT_{name.upper()}": str(value)
        for name, value in {"token": TOKEN, "field_guide": "false", **settings}.items()
    }
    with program(command, port, folder / "server.log", env) as server:
        if wait:
            server.until("/readyz")
        yield server


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
