"""Programs that tests start: always on loopback, always stopped, their output kept for the message of a failure."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx

BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def answers(url: str) -> bool:
    """Whether `url` answers 200 now."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def listens(port: int) -> bool:
    """Whether something listens on this loopback port."""
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def identity(user: str | None) -> dict[str, Any]:
    """Arguments of `subprocess` that run a program as `user`; none for None."""
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}


class Process:
    """A program in a process group of its own.

    Args:
        command: program and arguments.
        ready: tells whether it is up; asked until it is, or until the program ends, or for `patience` seconds.
        log: file that gets its output.
        env: added to the environment of the tests.
        user: name of the user to run as; needs root.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        ready: Callable[[], bool],
        log: Path,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        patience: float = 120,
    ):
        self.command = [str(c) for c in command]
        self.ready, self.log, self.user, self.patience = ready, log, user, patience
        self.env = {**os.environ, **(env or {})}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    def start(self) -> None:
        with self.log.open("ab") as out:
            place = {"cwd": self.log.parent, "start_new_session": True, **identity(self.user)}
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out, env=self.env, **place)
        self.until()

    def __enter__(self) -> Self:
        """Started; at the end of the block it is stopped without much patience: nothing there is worth waiting for."""
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(patience=2)

    def until(self) -> None:
        """Waits until it is ready; raises where it ends before, or takes too long."""
        end = time.monotonic() + self.patience
        while not self.ready():
            if not self.running:
                raise RuntimeError(f"{self.command[0]} ended with {self.process.returncode}:\n{self.output()}")
            if time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"{self.command[0]} was not ready within {self.patience:g} s:\n{self.output()}")
            time.sleep(0.05)

    def output(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-4000:]

    def send(self, number: int) -> None:
        """To the program and all that it started."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                return

    def kill(self) -> None:
        """As a crash: at once, nothing is tidied up."""
        self.send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(20)

    def stop(self, number: int = signal.SIGTERM, patience: float = 40) -> int | None:
        """Asks the program to end and returns its exit code; kills what has not ended after `patience` seconds."""
        if self.process is None:
            return None
        if self.running:
            self.process.send_signal(number)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill()
        self.send(signal.SIGKILL)
        return self.process.returncode


class FanlightServer(Process):
    """`fanlight serve` on a free loopback port with its own data folder.

    Settings are keywords: `FanlightServer(folder, root_path="/lab")` sets FANLIGHT_ROOT_PATH.
    Worked examples are off unless asked for.
    """

    def __init__(
        self,
        folder: Path,
        *,
        token: str = "test-token",
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        **settings: object,
    ):
        self.data, self.token = folder / "data", token
        self.port = free_port()
        prefix = str(settings.get("root_path", "")).rstrip("/")
        self.url = f"http://127.0.0.1:{self.port}{prefix}"
        named = {
            f"FANLIGHT_{name.upper()}": str(value)
            for name, value in {"examples": False, "field_guide": False, "scenes": False, **settings}.items()
        }
        super().__init__(
            [BIN / "fanlight", "serve", "--port", str(self.port), "--data-dir", self.data, "--no-browser", *args],
            ready=lambda: answers(f"{self.url}/readyz"),
            log=folder / "server.log",
            env={"FANLIGHT_TOKEN": token, **named, **(env or {})},
        )

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}
