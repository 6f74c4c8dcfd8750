"""Chromium for the benchmarks: found on this machine, quiet, asking nobody anything."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from fanlight.cli.output import part
from fanlight.errors import FanlightError

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--no-sandbox",  # benchmarks often run as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
SCREEN = {"width": 1600, "height": 1075}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser (playwright's `Browser`)."""
    path = os.environ.get("FANLIGHT_TEST_CHROMIUM") or next((p for n in NAMES if (p := shutil.which(n))), None)
    if path is None:
        raise FanlightError(
            "This benchmark needs Chromium, which is not installed here.",
            code="not_installed",
            hint="On Debian: apt-get install chromium. FANLIGHT_TEST_CHROMIUM names another place.",
        )
    with part("playwright.sync_api", "bench").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A person's tab: a context of its own (no cookies, an empty cache), and what it loads.

    Args:
        toured: whether the first-visit tour was dismissed before.
    """

    def __init__(self, browser: Any, *, toured: bool = True):
        self.context = browser.new_context(viewport=SCREEN)
        self.page = self.context.new_page()
        self.page.set_default_timeout(600_000)
        self.requests: list[str] = []
        self.weights: list[float] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        net = self.context.new_cdp_session(self.page)
        net.send("Network.enable")
        net.on("Network.loadingFinished", lambda e: self.weights.append(e["encodedDataLength"]))
        if toured:
            self.page.add_init_script("localStorage.setItem('fanlight-tour', 'done')")

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    @property
    def weight(self) -> float:
        """Bytes on the wire so far: bodies as they were sent, and headers."""
        return sum(self.weights)


def strangers(requests: list[str], home: str) -> list[str]:
    """Requests that left for another host than `home`'s."""
    own = urlsplit(home).netloc
    return [
        url
        for url in requests
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and urlsplit(url).netloc != own
    ]
