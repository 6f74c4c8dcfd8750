"""Below a path prefix, behind a reverse proxy that takes it off and behind one that keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser_visitor import Visitor, photograph

from support import proxy
from support.processes import FanlightServer, Process, answers, free_port

pytestmark = pytest.mark.browser
PREFIX = "/lab/fanlight"


@pytest.fixture(scope="module", params=[True, False], ids=["taken off", "kept"])
def front(request: Any, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address that people use, and the token."""
    folder, port = tmp_path_factory.mktemp("proxied"), free_port()
    url = f"http://127.0.0.1:{port}{PREFIX}"
    server = FanlightServer(folder, root_path=PREFIX, public_url=url)
    behind = f"http://127.0.0.1:{server.port}"
    command = proxy.command(port, behind, PREFIX, strip=request.param)
    before = Process(command, ready=lambda: answers(f"{url}/readyz"), log=folder / "proxy.log", patience=60)
    try:
        server.start()
        before.start()
        yield url, server.token
    finally:
        before.stop(patience=1)
        server.stop(patience=2)


def test_everything_works_below_a_prefix(browser: Any, front: tuple[str, str]) -> None:
    url, token = front
    with Visitor(browser, url, token) as me, Visitor(browser, url) as stranger:
        asked: list[str] = []
        me.page.on("request", lambda r: asked.append(r.url))
        refused: list[str] = []
        me.page.on("response", lambda r: refused.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        me.page.add_init_script("addEventListener('fanlight:event', () => { window.heard = (window.heard ?? 0) + 1; })")
        with me.page.expect_response(f"{url}/api/v1/events") as stream:
            page = me.enter()
        assert stream.value.headers["content-type"].startswith("text/event-stream")
        for name in ("Models", "Data", "Jobs", "Shares", "Settings", "Explain"):
            page.click(f"a.nav >> text={name}")
            page.wait_for_selector(f"a.nav[aria-current=page] >> text={name}")
            page.wait_for_selector("main h1")
        page.wait_for_selector("#wb-go")
        me.upload("cup.jpg", photograph())
        me.methods("Occlusion")
        me.explain()
        me.until("window.heard > 0")
        page.click(".slot h3 a")
        page.wait_for_selector("#ex-body .over")
        me.painted(1, "#ex-body")
        page.click("#ex-share")
        page.click("#ex-share-make")
        page.wait_for_selector("#ex-share-url")
        link = page.inner_text("#ex-share-url")
        assert link.startswith(f"{url}/s/")
        assert stranger.page.goto(link).status == 200
        assert "Occlusion" in stranger.page.inner_text("body")
        assert stranger.page.locator("img").evaluate_all("all => all.every(i => i.complete && i.naturalWidth)")
        assert [u for u in asked if not u.startswith((url + "/", "data:", "blob:"))] == []
        assert refused == []
        assert not [u for u in asked if "/api/v1/jobs?" in u], "events came by the stream, nothing had to be polled"
