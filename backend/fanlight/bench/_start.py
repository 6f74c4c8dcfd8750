"""From the command to the first page in a browser."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from fanlight.bench._browser import Tab, chromium
from fanlight.bench._server import fanlight


def first_page(folder: Path, rounds: int) -> list[float]:
    """Seconds from starting `fanlight serve` with an empty data folder until its first page is painted.

    Migration, worked examples and everything else is as `make run` does it. The browser is open already.
    """
    from playwright.sync_api import Error

    seconds = []
    with chromium() as browser:
        for n in range(rounds):
            with fanlight(folder / f"start-{n}", wait=False) as server, Tab(browser) as tab:
                while True:
                    with contextlib.suppress(Error):  # refused until it listens
                        tab.page.goto(server.path("/"))
                        break
                    server.check()
                    time.sleep(0.02)
                tab.page.wait_for_selector("main h1")
                tab.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                seconds.append(time.monotonic() - server.began)
    return seconds
