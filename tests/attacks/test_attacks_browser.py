"""Markup in every text that somebody can give stays text on every page, in hover texts, on share pages and in exported files, in a real browser."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from attacks_rig import CLASSES, SETTINGS, Target, model, noise

from support.processes import FanlightServer

pytestmark = pytest.mark.browser
MARK = '"><img src=x onerror=window.__xss=1 data-xss>'
LINK = "[x](javascript:window.__xss=1) <a href=javascript:window.__xss=1 data-xss>x<\N{FULLWIDTH SOLIDUS}a>"
SCRIPT = "<script data-xss>window.__xss=1</script>"
FOUND = """() => [
  ...(window.__xss ? ["it ran"] : []),
  ...[...document.querySelectorAll("[data-xss]")].map(e => "an element: " + e.outerHTML.slice(0, 120)),
  ...[...document.querySelectorAll("a[href], area[href], form[action], iframe[src]")]
    .filter(e => /^\\s*(javascript|data:text|vbscript)/i.test(e.getAttribute("href") ?? e.getAttribute("action") ?? e.getAttribute("src")))
    .map(e => "an address: " + e.outerHTML.slice(0, 120)),
]"""
HOVERED = "[title], [aria-label], .js-plotly-plot, .map, .chips label, button, .ag-row"


@pytest.fixture(scope="module")
def hostile(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, dict[str, str]]]:
    """A server whose every text is markup, and the ids of what is on it."""
    folder = tmp_path_factory.mktemp("hostile")
    label = folder / "pictures" / MARK
    label.mkdir(parents=True)
    for n in range(3):
        (label / f"{MARK}-{n}.png").write_bytes(noise(n))
    path = model(folder, tuple(f"{c} {MARK} {SCRIPT}" for c in CLASSES))
    server = FanlightServer(folder, **SETTINGS, models=path, datasets=f"shelf={folder / 'pictures'}")
    server.start()
    http = httpx.Client(base_url=server.url, headers=server.headers, timeout=60, trust_env=False)
    try:
        target = Target(server, http)
        yield target, filled(target)
    finally:
        http.close()
        server.stop(patience=5)


def filled(target: Target) -> dict[str, str]:
    picture = target.upload(noise(50), f"{MARK}.png").json()["id"]
    one, two = target.explain(input=picture), target.explain(input=picture, explainer="edges")
    for ident in (one["id"], two["id"]):
        body = {"title": MARK, "note": f"{SCRIPT} {LINK} {MARK}", "tags": [MARK[:50], SCRIPT[:40]]}
        assert target.call("PATCH", f"/explanations/{ident}", json=body).status_code == 200
    hidden = {"explanation": one["id"], "edits": [{"mask_region": [0, 0, 8, 8]}], "note": SCRIPT + MARK}
    target.call("POST", "/interventions", json=hidden)
    share = target.call("POST", "/shares", json={"explanations": [one["id"], two["id"]]}).json()
    for path, body in (("/views", {"name": MARK, "query": {"q": SCRIPT, "tag": MARK[:50]}}), ("/keys", {"name": MARK, "scopes": ["read"]}),
                       ("/workspaces", {"id": "lab", "name": MARK})):  # fmt: skip
        assert target.call("POST", path, json=body).status_code == 201, path
    end = time.monotonic() + 60
    while "shelf" not in {d["id"] for d in target.call("GET", "/datasets").json()}:
        assert time.monotonic() < end
        time.sleep(0.1)
    asked = {"model": "tiny", "explainer": "saliency", "name": MARK + SCRIPT, "source": {"dataset": "shelf"}}
    sweep = target.call("POST", "/sweeps", json=asked).json()["id"]
    while target.call("GET", f"/sweeps/{sweep}").json()["state"] != "done":
        assert time.monotonic() < end + 60
        time.sleep(0.2)
    target.account("mallory", "lab", "owner").close()
    return {"one": one["id"], "two": two["id"], "picture": picture, "sweep": sweep, "token": share["token"]}


@pytest.fixture
def page(browser: Any, hostile: tuple[Target, dict[str, str]]) -> Iterator[Any]:
    """A page of somebody who is in; dialogs are taken for attacks that worked."""
    target, _ = hostile
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.add_init_script("localStorage.setItem('fanlight-tour', 'done')")
    opened = context.new_page()
    opened.on("dialog", lambda d: (opened.evaluate("window.__xss = 1"), d.dismiss()))
    opened.goto(f"{target.server.url}/?token={target.server.token}")
    opened.wait_for_selector("main")
    yield opened
    context.close()


PAGES = (
    "/", "/?tag={tag}", "/?q={tag}", "/e/{one}", "/e/{two}", "/compare?ids={one},{two}", "/explain?input={picture}", "/models", "/models/tiny",
    "/data", "/data?dataset=shelf", "/sweeps", "/sweeps/{sweep}", "/sweeps/new", "/jobs", "/shares", "/settings", "/{tag}", "/e/{tag}",
    "/models/{tag}",
)  # fmt: skip


@pytest.mark.parametrize("address", PAGES)
def test_markup_stays_text_on_every_page(hostile: tuple[Target, dict[str, str]], page: Any, address: str) -> None:
    target, known = hostile
    tag = httpx.QueryParams({"x": MARK})
    page.goto(target.server.url + address.format(**known, tag=str(tag)[2:]))
    page.wait_for_selector("main, h1")
    with contextlib.suppress(Exception):  # a page that keeps a stream open is never idle
        page.wait_for_load_state("networkidle", timeout=1500)
    page.wait_for_timeout(500)
    assert page.evaluate(FOUND) == []
    for element in page.locator(HOVERED).all()[:25]:
        if element.is_visible():
            with contextlib.suppress(Exception):  # what moves away while it is aimed at
                element.hover(timeout=300)
    page.wait_for_timeout(200)
    assert page.evaluate(FOUND) == [], "after hovering"


def test_the_texts_are_there_to_be_misread(hostile: tuple[Target, dict[str, str]], page: Any) -> None:
    target, known = hostile
    for address, wanted in (("/e/{one}", MARK), ("/sweeps/{sweep}", MARK), ("/models/tiny", "left")):
        page.goto(target.server.url + address.format(**known))
        page.wait_for_function("words => document.body.innerText.includes(words)", arg=wanted, timeout=30_000)


def test_markup_stays_text_for_who_has_a_link_a_file_or_no_account(
    hostile: tuple[Target, dict[str, str]], browser: Any, tmp_path: Path
) -> None:
    target, known = hostile
    context = browser.new_context()
    shown = context.new_page()
    shown.goto(f"{target.server.url}/s/{known['token']}")
    assert "onerror" in shown.inner_text("body") and shown.evaluate(FOUND) == []
    (tmp_path / "x.html").write_bytes(target.call("GET", f"/explanations/{known['one']}/export.html").content)
    shown.goto(f"file://{tmp_path / 'x.html'}")  # nobody sends a policy with a file
    assert "onerror" in shown.inner_text("body") and shown.evaluate(FOUND) == []
    (tmp_path / "s.html").write_bytes(target.call("GET", f"/sweeps/{known['sweep']}/export.html").content)
    shown.goto(f"file://{tmp_path / 's.html'}")
    assert shown.evaluate(FOUND) == []
    (tmp_path / "x.svg").write_bytes(target.call("GET", f"/explanations/{known['one']}/export.svg").content)
    shown.goto(f"file://{tmp_path / 'x.svg'}")
    assert shown.evaluate(FOUND) == []
    shown.goto(f"{target.server.url}/?x=" + httpx.QueryParams({"x": MARK}).__str__())
    shown.fill("input[name=name]", MARK)
    shown.fill("input[name=password]", MARK)
    shown.click("button >> nth=0")
    shown.wait_for_selector("form")
    assert shown.evaluate(FOUND) == []
    context.close()
