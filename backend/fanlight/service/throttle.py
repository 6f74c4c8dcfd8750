"""How often one may fail: a bounded memory of failures, of this server alone."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

KEPT = 10_000  # names whose failures are remembered; hashing two passwords at a time, nobody fails as often within the window


class Throttle:
    """Args: most: failures within `window` seconds; clock: seconds, monotonic."""

    def __init__(self, most: int, window: float, clock: Callable[[], float] = time.monotonic):
        self.most, self.window, self._clock = most, window, clock
        self._failed: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def wait(self, key: Hashable) -> float:
        """Seconds until this key may try again; 0 where it may now."""
        failed, t = self._failed.get(key), self._clock()
        if failed is None:
            return 0.0
        while failed and failed[0] <= t - self.window:
            failed.popleft()
        return failed[0] + self.window - t if len(failed) >= self.most else 0.0

    def fail(self, key: Hashable) -> None:
        self._failed.setdefault(key, deque(maxlen=self.most)).append(self._clock())
        self._failed.move_to_end(key)
        while len(self._failed) > KEPT:
            self._failed.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        self._failed.pop(key, None)
