"""What the compute worker keeps between requests: resident models and intermediates, least recently used out first, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


def size_of(value: Any) -> int:
    """Bytes of the arrays in `value`; 64 for anything else."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if hasattr(value, "parameters"):
        return int(sum(p.nbytes for p in value.parameters()) + sum(b.nbytes for b in value.buffers()))
    if isinstance(value, (list, tuple)):
        return sum(map(size_of, value))
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if hasattr(value, "net"):
        return size_of(value.net)
    if hasattr(value, "__dict__"):
        return sum(map(size_of, vars(value).values()))
    return 64


class Reuse:
    """A least-recently-used store; live edits read it beside the thread that computes. Args: budget: bytes."""

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable) -> Any | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int | None = None) -> None:
        """Keeps `value`; what is larger than the whole budget is not kept. Args: size: bytes, where they were measured."""
        size = size_of(value) if size is None else size
        with self._lock:
            self.drop(key)
            if size > self.budget:
                return
            self._kept[key] = (value, size)
            self.used += size
            while self.used > self.budget:
                _, (_, freed) = self._kept.popitem(last=False)
                self.used -= freed

    def compute(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def drop(self, key: Hashable) -> None:
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self.used -= found[1]

    def names(self) -> list[Hashable]:
        """Of what is kept, least recently used first."""
        with self._lock:
            return list(self._kept)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self.used = 0

    def __len__(self) -> int:
        return len(self._kept)
