"""When the client asks again: a request answered 429 was refused before anything was done, so it may be sent again, whatever it asks for.

Pure: says how long to wait; the clients wait.
"""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import httpx

TIMES = 5  # how often one request is sent again at most
UNSAID = 1.0  # seconds to wait where the answer does not say, as proxies do not always


class Patience:
    """What one request has left of it.

    Args:
        seconds: that it may wait in all; 0: it is never sent again.
    """

    def __init__(self, seconds: float):
        self._seconds, self._times = seconds, TIMES

    def wait(self, response: httpx.Response) -> float | None:
        """Seconds to wait before the request is sent again; None: the answer stands.

        It stands where it is no 429, where the request was sent again `TIMES` times, and where the server asks for a longer wait than is left:
        to wait less than it says is to be refused again.
        """
        if response.status_code != httpx.codes.TOO_MANY_REQUESTS or not self._times:
            return None
        seconds = retry_after(response)
        seconds = UNSAID if seconds is None else seconds
        if self._seconds <= 0 or seconds > self._seconds:
            return None
        self._seconds -= seconds
        self._times -= 1
        return seconds


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the header Retry-After asks for, which is a number of them or a date; None where it is missing or neither."""
    said = response.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])  # thirty years are enough
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return None
