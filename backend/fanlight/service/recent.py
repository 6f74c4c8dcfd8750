"""Bytes made on request, kept while they fit: least recently used out first, bounded in bytes, shared by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable


class Recent:
    """Args: budget: bytes of all values together; what alone is larger is not kept."""

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> bytes | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, value: bytes) -> None:
        with self._lock:
            self.used -= len(self._kept.pop(key, b""))
            if len(value) > self.budget:
                return
            self._kept[key] = value
            self.used += len(value)
            while self.used > self.budget:
                _, dropped = self._kept.popitem(last=False)
                self.used -= len(dropped)
