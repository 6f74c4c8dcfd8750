"""The page of words with what stands beside the maps: files of it, and work that is given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from browser_visitor import Visitor

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
PROMPT = "a red circle left of a blue cross"


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    """A server whose only models are those of the scenes."""
    started = FanlightServer(tmp_path_factory.mktemp("files"), scenes=True, default_model=False)
    try:
        started.start()
        yield started
    finally:
        started.stop(patience=2)


@pytest.fixture(scope="module")
def record(server: FanlightServer) -> Any:
    asked = {"kind": "prompt", "value": PROMPT}
    said = httpx.post(f"{server.url}/api/v1/inputs", json=asked, headers=server.headers, trust_env=False).json()
    with Client(server.url, server.token) as fan:
        return fan.explain(model="scenes-exact", input=said["id"], explainer="diffusion-pid", params={"guidance": 1})


def test_files_are_asked_for_with_the_region_that_is_marked(visitor: Come, server: FanlightServer, record: Any) -> None:
    with visitor() as me:
        page = me.enter(f"/e/{record.id}/words")
        page.wait_for_selector("#wd-maps canvas")
        links = page.locator("#ex-export a[href*='region=']")
        assert links.count() == 0
        page.click("#wd-mark")
        page.click(".wd-marking summary")
        for name, value in (("left", 1), ("right", 8), ("top", 1), ("bottom", 16)):
            page.fill(f"#wd-{name}", str(value))
        page.click("#wd-box")
        files = links.evaluate_all("all => all.map(a => a.href)")
        assert {f.partition("export.")[2].partition("?")[0] for f in files} == {"html", "pdf", "svg", "png", "json"}
        said = httpx.get(next(f for f in files if "export.svg" in f), headers=server.headers, trust_env=False).text
        assert "128 of 256 places was marked" in said and "nat inside" in said
        page.reload()
        page.wait_for_selector("#ex-export a[href*='region=']", state="attached")
        page.click("#wd-clear")
        assert links.count() == 0 and me.faults() == []
