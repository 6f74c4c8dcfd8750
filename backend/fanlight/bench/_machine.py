"""Where and with what a benchmark ran: without it a number means nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel


class Machine(BaseModel):
    """Args: cores: those that this process may use; memory: in GiB; load: running processes at the start, of whoever."""

    cpu: str
    cores: int
    memory: float
    system: str
    load: float

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.memory:.0f} GiB, {self.system}"


def machine() -> Machine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release()}"
    return Machine(cpu=_cpu(), cores=cores, memory=round(memory, 1), system=system, load=round(os.getloadavg()[0], 2))


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Of Python and of these distributions."""
    return {"python": platform.python_version()} | {p: importlib.metadata.version(p) for p in packages}


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")
