"""Every page of a real server that has something to show: painted without faults, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_visitor import DESKTOP, PHONE, Visitor

from fanlight.client import Client
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
MODEL = "efficientnet-lite0"
SCREENS = {
    "light": (DESKTOP, "light"),
    "dark": (DESKTOP, "dark"),
    "phone": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}


@pytest.fixture(scope="module")
def pages(server: FanlightServer) -> Iterator[dict[str, str]]:
    """Address of each page by name, once there is something on it."""
    with Client(server.url, server.token) as client:
        samples = client.samples("photographs").items
        made = [
            client.explain(MODEL, sample.input, method)
            for sample, method in zip(samples, ("grad-cam", "saliency", "occlusion", "random"), strict=False)
        ]
        both = [made[0], client.explain(MODEL, samples[0].input, "saliency")]
        client.share([made[1].id])
        link = client.share([made[0].id]).url
        asked = f"model={MODEL}&input={samples[0].input}&explainers=grad-cam,saliency"
        yield {
            "gallery": "/",
            "filtered": "/?family=attribution&explainer=saliency",
            "table": "/?view=table",
            "workbench-empty": "/explain",
            "workbench": f"/explain?{asked}&results={','.join(e.id for e in both)}",
            "explanation": f"/e/{made[0].id}",
            "models": "/models",
            "model": f"/models/{MODEL}",
            "data": "/data",
            "jobs": "/jobs",
            "shares": "/shares",
            "settings": "/settings",
            "share": link.removeprefix(server.url),
        }


def settled(me: Visitor, name: str) -> Any:
    """The page with everything on it that takes a moment, its trust measured."""
    page = me.page
    if name in ("workbench", "explanation"):
        me.painted(2 if name == "workbench" else 1)
        place = ".slot .trust" if name == "workbench" else "#ex-badge .trust"
        page.wait_for_selector(
            f"{place}:text-matches('(faithfulness|not above chance,) [+−]?\\\\d') >> nth=0", timeout=150_000
        )
    if name == "table":
        page.wait_for_selector(".ag-cell >> text=Saliency")
    me.until("[...document.images].every(i => i.complete || i.loading === 'lazy')")
    return page


@pytest.mark.parametrize("screen", [pytest.param(s, marks=pytest.mark.slow if s == "dark" else ()) for s in SCREENS])
def test_every_page_is_painted_without_faults(visitor: Come, pages: dict[str, str], screen: str) -> None:
    size, scheme = SCREENS[screen]
    found = {}
    with visitor(size=size, scheme=scheme) as me:
        me.enter()
        for name, address in pages.items():
            me.open(address)
            settled(me, name).wait_for_timeout(250)
            me.shot(f"{name}-{screen}", full=size == PHONE)
            wrong = me.faults()
            if me.sideways() > 0:
                wrong.append(f"{me.sideways()} px too wide")
            if wrong:
                found[name] = wrong
    assert found == {}


def test_pages_at_twice_the_size_do_not_scroll_sideways(visitor: Come, pages: dict[str, str]) -> None:
    with visitor(size=(640, 400)) as me:  # 1280 x 800 at 200 %
        me.enter()
        wide = {}
        for name, address in pages.items():
            me.open(address)
            settled(me, name)
            if me.sideways() > 0:
                wide[name] = me.sideways()
        assert wide == {}
