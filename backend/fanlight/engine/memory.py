"""What fits on a device: models that stay on it, batches and passes that were too large, and how its failures are told apart.

Nothing is guessed: bytes of a model are what the allocator handed out while it was loaded, and the largest batch of a method on a model is what
remains after it once ran out of memory. What was learned holds until the worker ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from fanlight.engine.core import BATCH_COST
from fanlight.engine.reuse import Reuse, size_of

CPU_CHUNK = 8  # fixed, so that the same request gives the same bytes on every start; docs/decisions/0003
SHARE = 0.5  # of the memory that is free at the start is for resident models, the rest for what they compute
TRIED = (8, 16, 32, 64, 128)  # rows per pass
SLOW = 0.2  # seconds that no pass may take
FULL = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
# Errors after which every further call of the process to the device fails. CUDA's names for them: cudaErrorAssert, IllegalAddress,
# IllegalInstruction, MisalignedAddress, HardwareStackError, InvalidPc, LaunchFailure, LaunchTimeout, ECCUncorrectable.
POISON = (
    "device-side assert",
    "illegal memory access",
    "illegal instruction",
    "misaligned address",
    "hardware stack error",
    "invalid program counter",
    "unspecified launch failure",
    "launch timed out",
    "uncorrectable ECC",
)


class Device(Protocol):
    """A device's allocator; a double stands for it in tests."""

    def allocated(self) -> int | None:
        """Bytes that tensors hold now; None where that is not known."""
        ...

    def free(self) -> int | None:
        """Bytes that are left; None where that is not known."""
        ...

    def empty(self) -> None:
        """Gives back what the allocator keeps for later."""
        ...

    def alive(self) -> bool:
        """Whether the device still does anything for this process."""
        ...


@dataclass(frozen=True)
class Torch:
    """The allocator of a device of torch. On the CPU nothing is known: bytes are counted, not measured."""

    device: torch.device

    def allocated(self) -> int | None:
        return torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else None

    def free(self) -> int | None:
        return int(torch.cuda.mem_get_info(self.device)[0]) if self.device.type == "cuda" else None

    def empty(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def alive(self) -> bool:
        if self.device.type != "cuda":
            return True
        try:
            torch.cuda.synchronize(self.device)
        except RuntimeError as e:
            return full(e)
        return True


@dataclass
class Memory:
    """Args:
    device: the allocator.
    models: those that are resident, by digest; least recently used go first.
    kept: intermediates, which can all be made again.
    """

    device: Device
    models: Reuse
    kept: Reuse
    rows: dict[str, int] = field(default_factory=dict)
    """Rows per pass by model: where throughput has its knee."""
    passes: dict[tuple[str, str], int] = field(default_factory=dict)
    """Rows per pass by (model, method), where the above was too much."""
    batches: dict[tuple[str, str], int] = field(default_factory=dict)
    """Largest cost of a batch by (model, method), where the usual one was too much."""

    def resident(self, name: str, load: Callable[[], Any]) -> Any:
        """The model of that digest, loaded where it is not there; others leave until all fit into the budget."""
        model = self.models.get(name)
        if model is None:
            before = self.device.allocated()
            model = load()
            after = self.device.allocated()
            measured = 0 if before is None or after is None else after - before
            count = len(self.models)
            self.models.put(name, model, max(measured, size_of(model)))
            if len(self.models) <= count:
                self.device.empty()
        return model

    def chunk(self, name: str, method: str, knee: Callable[[], int]) -> int:
        """Rows per pass. Args: knee: measures how many are fastest, once per model."""
        if name not in self.rows:
            self.rows[name] = knee()
        return min(self.rows[name], self.passes.get((name, method), self.rows[name]))

    def most(self, name: str, method: str) -> int:
        """Largest cost of a batch, in forward passes."""
        return self.batches.get((name, method), BATCH_COST)

    def split(self, name: str, method: str, cost: int) -> None:
        """A batch of this cost did not fit: none as large is made again."""
        self.kept.clear()
        self.device.empty()
        self.batches[name, method] = max(1, min(self.most(name, method), cost) // 2)

    def relieve(self, name: str, method: str, tries: int) -> bool:
        """One item did not fit, for the `tries`-th time: first everything else leaves, then passes get smaller.

        False where nothing is left to try. Then it was the item, so what was learned from it is forgotten.
        """
        self.kept.clear()
        for other in [n for n in self.models.names() if n != name]:
            self.models.drop(other)
        self.device.empty()
        if tries == 1:
            return True
        chunk = self.passes.get((name, method)) or self.rows.get(name, CPU_CHUNK)
        if chunk == 1:
            self.passes.pop((name, method), None)
            return False
        self.passes[name, method] = chunk // 2
        return True


def budget(device: Device, wanted: int, otherwise: int) -> int:
    """Bytes for resident models. Args: wanted: what was set, 0 for half of what is free; otherwise: where that is not known."""
    free = device.free()
    return otherwise if free is None else wanted or int(free * SHARE)


def knee(ask: Callable[[int], None], empty: Callable[[], None]) -> int:
    """Rows per pass at the knee of throughput, found by doubling. Args: ask: asks the model about so many rows, to the end."""
    rate, best = 0.0, TRIED[0]
    for rows in TRIED:
        failed = False
        try:
            ask(rows)
            began = time.perf_counter()
            ask(rows)
            took = time.perf_counter() - began
        except RuntimeError as e:
            if not full(e):
                raise
            failed = True
        if failed:
            empty()
            break
        if rows / took < 1.1 * rate or took > SLOW:
            break
        rate, best = rows / took, rows
    return best


def full(error: BaseException) -> bool:
    """Whether memory ran out, perhaps inside of what was made of it on the way up."""
    return any(isinstance(e, (torch.OutOfMemoryError, MemoryError)) or _says(e, FULL) for e in _chain(error))


def poisoned(error: BaseException, device: Device) -> bool:
    """Whether the process can do nothing more on its device, so that it has to be replaced."""
    return any(_says(e, POISON) for e in _chain(error)) or not device.alive()


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return isinstance(error, RuntimeError) and any(w in str(error) for w in words)


def _chain(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    for _ in range(8):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__
