"""What a server and everything it started use: memory and processor time, from /proc (Linux)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from fanlight.errors import FanlightError

TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """`pid` and its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found = [pid]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found


def cpu_seconds(pid: int) -> float:
    """Processor time of one process so far, of all its threads; 0 where it is gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICK if fields else 0.0


def memory(pid: int) -> tuple[int, int]:
    """(RSS, PSS) of one process in bytes. PSS counts a page that n processes share as 1/n of it, so only PSS may be added up
    without counting the shared libraries twice."""
    try:
        return parse_rollup(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0, 0
    except PermissionError as e:
        raise FanlightError(
            f"The memory of process {pid} cannot be read.", code="not_permitted", hint="Run it as the same user."
        ) from e


def parse_rollup(text: str) -> tuple[int, int]:
    """(RSS, PSS) in bytes from the text of smaps_rollup."""
    kib = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines() if line.endswith(" kB")}
    return kib.get("Rss", 0) * 1024, kib.get("Pss", 0) * 1024


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold spaces; empty where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


class Peak:
    """The largest memory of a process tree, looked at every `every` seconds while the context is open.

    >>> with Peak(server.pid) as peak: ...
    >>> peak.rss, peak.pss  # bytes
    """

    def __init__(self, pid: int, every: float = 0.2):
        self.pid, self.every = pid, every
        self.rss = self.pss = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            rss, pss = (sum(values) for values in zip(*map(memory, tree(self.pid)), strict=True))
            self.rss, self.pss = max(self.rss, rss), max(self.pss, pss)
            if self._over.wait(self.every):
                return
