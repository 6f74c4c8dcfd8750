"""The two applications as a person drives them in a browser: send a picture, choose a method, press Explain, see the map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from fanlight.bench._browser import Tab
from fanlight.bench._server import Server
from fanlight.errors import FanlightError

METHODS = ("Saliency", "Integrated Gradients", "Occlusion")
PARAMETERS = {"Integrated Gradients": {"Steps": 50, "Tolerance": 0}, "Occlusion": {"Window": 8, "Stride": 8}}
"""What makes both do the same work: 50 gradients, 784 windows. Fanlight's form takes them; the Gradio app has them in its source."""


def watch(tab: Tab, event: str, ready: str, before: str = "null") -> None:
    """Has the page note the time from its next `event` (click, change) until `ready` holds and a frame was drawn after it.

    Args:
        ready: JavaScript, asked at every frame; `was` is what `before` gave at the event.
    """
    tab.page.evaluate(
        f"""() => {{
          window.seen = new Promise((done) => document.addEventListener({event!r}, (e) => {{
            const was = {before};
            const look = () => requestAnimationFrame(({ready}) ? () => done(performance.now() - e.timeStamp) : look);
            look();
          }}, {{ capture: true, once: true }}));
        }}"""
    )


def seen(tab: Tab) -> float:
    """Seconds that `watch` noted; waits for them."""
    return float(tab.page.evaluate("() => window.seen")) / 1000


class Side(Protocol):
    """One of the two."""

    name: str
    server: Server

    def open(self, tab: Tab) -> None:
        """The page on which pictures are explained."""
        ...

    def send(self, tab: Tab, picture: Path) -> float:
        """Chooses a file; seconds until the page has it and shows it."""
        ...

    def choose(self, tab: Tab, method: str) -> None: ...

    def press(self, tab: Tab) -> None:
        """Presses Explain; `seen` then gives the seconds until the map is on the screen."""
        ...

    def outlasted(self, tab: Tab) -> bool: ...


class Fanlight:
    name = "fanlight"
    MAPS = "[...document.querySelectorAll('.slot:not([hidden]) .map img')]"
    OVERS = "[...document.querySelectorAll('.slot:not([hidden]) .map img.over')].map(i => i.currentSrc)"

    def __init__(self, server: Server):
        self.server = server

    def open(self, tab: Tab) -> None:
        tab.page.goto(self.server.path("/explain"))
        tab.page.wait_for_selector("#wb-go")

    def send(self, tab: Tab, picture: Path) -> float:
        page = tab.page
        shown = "document.getElementById('wb-picture')"
        ready = (
            f"document.getElementById('wb-about').textContent.includes({picture.name!r})"
            f" && !document.getElementById('wb-go').disabled && {shown}.complete && {shown}.naturalWidth > 0"
        )
        watch(tab, "change", ready)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Choose a file", exact=True).click()
        chooser.value.set_files(picture)
        return seen(tab)

    def choose(self, tab: Tab, method: str) -> None:
        page = tab.page
        for chip in page.locator(".chips input[type=checkbox]").all():
            label = page.locator(f"label[for={chip.get_attribute('id')}]")
            if chip.is_checked() != (label.inner_text().strip() == method):
                label.click()
        form = page.locator("details.method", has_text=method)
        form.wait_for()
        page.wait_for_function("document.querySelectorAll('details.method').length == 1")
        if method in PARAMETERS:
            if form.get_attribute("open") is None:
                form.locator("summary").first.click()
            for name, value in PARAMETERS[method].items():
                form.get_by_label(name, exact=True).fill(str(value))
            self._check(tab, PARAMETERS[method])

    def _check(self, tab: Tab, wanted: dict[str, int]) -> None:
        """The address says what will be asked for; without this, less work than the other side's might go unnoticed."""
        tab.page.wait_for_timeout(300)
        said = parse_qs(urlsplit(tab.page.url).query).get("params", ["{}"])[0]
        given: dict[str, Any] = next(iter(json.loads(said).values()), {})
        if {name.lower(): value for name, value in wanted.items()} != given:
            raise FanlightError(f"The page will ask for {given} instead of {wanted}.", code="unexpected")

    def press(self, tab: Tab) -> None:
        done = "i.complete && i.naturalWidth > 0"
        ready = f"{self.MAPS}.length && {self.MAPS}.every(i => {done}) && {self.OVERS}.every(s => !was.includes(s))"
        watch(tab, "click", ready, self.OVERS)
        tab.page.click("#wb-go")

    def outlasted(self, tab: Tab) -> bool:
        """Whether this tab still waits for its job."""
        return bool(tab.page.locator(".slot:not([hidden]) :is(.waiting, .asking)").count())


class Gradio:
    name = "gradio"
    SHOWN = "[...document.querySelectorAll('#map img')].map(i => i.currentSrc)"

    def __init__(self, server: Server):
        self.server = server

    def open(self, tab: Tab) -> None:
        tab.page.goto(self.server.url)
        tab.page.wait_for_selector("#explain")

    def send(self, tab: Tab, picture: Path) -> float:
        page = tab.page
        clear = page.locator("#picture button[aria-label='Clear'], #picture button[aria-label='Remove Image']")
        if clear.count():
            clear.first.click()
            page.wait_for_selector("#picture img", state="detached")
        ready = "[...document.querySelectorAll('#picture img')].some(i => i.complete && i.naturalWidth > 0)"
        watch(tab, "change", ready)
        page.set_input_files("#picture input[type=file]", picture)
        return seen(tab)

    def choose(self, tab: Tab, method: str) -> None:
        tab.page.get_by_label(method, exact=True).check()

    def press(self, tab: Tab) -> None:
        images = "[...document.querySelectorAll('#map img')]"
        ready = f"{images}.some(i => i.complete && i.naturalWidth > 0 && !was.includes(i.currentSrc))"
        watch(tab, "click", ready, self.SHOWN)
        tab.page.click("#explain")

    def outlasted(self, _tab: Tab) -> bool:
        """Gradio has one queue: whoever is served later has waited for the other."""
        return True


def explain(side: Side, tab: Tab, method: str, picture: Path) -> tuple[float, float]:
    """(seconds until the picture was taken, seconds from Explain to the map on the screen)."""
    sent = side.send(tab, picture)
    side.choose(tab, method)
    side.press(tab)
    return sent, seen(tab)
