"""Somebody in front of a real server: a browser of their own, what they see, and a record of what went wrong."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

SCREENS = Path(__file__).resolve().parents[2] / "test-output" / "screens"
DESKTOP, PHONE = (1280, 800), (390, 844)
GRAVE = ("serious", "critical")
Array = np.ndarray[Any, np.dtype[np.int16]]


class Visitor:
    """A browser context: cookies, storage and address bar of one person.

    Args:
        url: where they reach the server, without a slash at the end.
        token: to enter with; None for somebody who only has a link.
        toured: whether the first-visit tour was dismissed before.
    """

    def __init__(
        self,
        browser: Any,
        url: str,
        token: str | None = None,
        *,
        size: tuple[int, int] = DESKTOP,
        scheme: str = "light",
        toured: bool = True,
    ):
        self.url, self.token = url, token
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        if toured:
            self.context.add_init_script("localStorage.setItem('fanlight-tour', 'done')")
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.wrong.append(f"{e} {e.stack}"))
        self.page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        host = urlsplit(request.url)
        if host.scheme in ("http", "https") and host.netloc != urlsplit(self.url).netloc:
            self.wrong.append(f"asked another host: {request.url}")

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.shot("failed-" + re.sub(r"\W+", "-", os.environ["PYTEST_CURRENT_TEST"])[-80:])
        self.context.close()
        if kind is None:
            assert not self.wrong, self.wrong

    def enter(self, path: str = "/") -> Any:
        """Comes with the token in the address, as the server prints it."""
        self.page.goto(f"{self.url}{path}?token={self.token}")
        self.page.wait_for_selector("main")
        return self.page

    def open(self, path: str) -> Any:
        self.page.goto(self.url + path)
        self.page.wait_for_selector("main")
        return self.page

    # --- what they do

    def upload(self, name: str, picture: bytes) -> None:
        kind = "image/jpeg" if name.endswith(".jpg") else "image/png"
        self.page.set_input_files("#upload-file", {"name": name, "mimeType": kind, "buffer": picture})
        self.page.wait_for_selector("#wb-go:enabled")

    def methods(self, *titles: str) -> None:
        """Exactly these chips are chosen on the workbench."""
        chips = self.page.locator(".chips label")
        for i in range(chips.count()):
            chip = chips.nth(i)
            checked = bool(chip.get_attribute("data-checked"))
            if checked != (chip.inner_text().strip() in titles):
                chip.click()
        for title in titles:
            self.page.wait_for_selector(f".method summary >> text={title}")

    def explain(self, maps: int = 1) -> None:
        """Presses Explain and waits for the maps and the words beside them: the map is painted first and drawn again with them."""
        self.page.click("#wb-go")
        self.painted(maps)
        words = "n => [...document.querySelectorAll('.slot .about')].filter(a => a.offsetParent && a.textContent.includes('computed in'))"
        self.until(f"{words}.length >= n", maps)
        self.painted(maps)

    def tab_to(self, selector: str, most: int = 60) -> None:
        """By Tab alone; wherever it stops on the way, one can see where one is."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            assert self.page.evaluate(FOCUS), f"focus is not visible on {self.page.evaluate(WHERE)}"
            if self.page.evaluate("s => !!document.activeElement.closest(s)", selector):
                return
        raise AssertionError(f"{most} times Tab do not lead to {selector}")

    # --- what they see

    def painted(self, count: int = 1, within: str = "body", seconds: float = 90) -> None:
        """Waits until as many maps are on the screen, picture and drawing loaded."""
        self.until(
            "([within, count]) => { const maps = [...document.querySelectorAll(within + ' .map')].filter(m => m.offsetParent);"
            "return maps.length >= count && maps.every(m => [...m.querySelectorAll('img')]"
            ".every(i => i.complete && i.naturalWidth)); }",
            [within, count],
            seconds,
        )

    def until(self, truth: str, given: Any = None, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.page.evaluate(truth, given):
            assert time.monotonic() < end, f"waited {seconds:g} s in vain for {truth}"
            time.sleep(0.05)

    def pixels(self, selector: str) -> Array:
        """What is painted there, (H, W, 3)."""
        shown = Image.open(io.BytesIO(self.page.locator(selector).first.screenshot())).convert("RGB")
        return np.asarray(shown, dtype=np.int16)

    def shot(self, name: str, *, full: bool = False) -> None:
        SCREENS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENS / f"{name}.png", full_page=full)

    def sideways(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def faults(self) -> list[str]:
        """What a machine that reads pages finds serious or critical."""
        found: list[Mapping[str, Any]] = Axe().run(self.page).response["violations"]
        return [
            f"{v['id']}: {', '.join(str(n['target']) for n in v['nodes'][:4])}" for v in found if v["impact"] in GRAVE
        ]


WHERE = "document.activeElement.outerHTML.slice(0, 160)"

# An outline of its own, of its label, or of what holds it; a text field may show it by its border.
FOCUS = """(() => {
  const at = document.activeElement;
  if (at === document.body) return true;
  const holders = [at, ...(at.labels ?? []), at.parentElement, at.parentElement?.parentElement, at.closest(".item")];
  const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim().toLowerCase();
  const hex = (c) => "#" + (c.match(/\\d+/g) ?? []).slice(0, 3).map((v) => Number(v).toString(16).padStart(2, "0")).join("");
  return holders.filter(Boolean).some((e) => {
    const s = getComputedStyle(e);
    const outlined = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1;
    return outlined || (parseFloat(s.borderTopWidth) >= 1 && hex(s.borderTopColor) === accent);
  });
})()"""


def photograph(name: str = "coffee.png", width: int = 320, quality: int = 88) -> bytes:
    """One of scikit-image's own photographs, smaller, as a JPEG: another picture than the sample of that name."""
    import skimage

    picture = Image.open(Path(skimage.__file__).parent / "data" / name).convert("RGB")
    picture = picture.resize((width, round(picture.height * width / picture.width)))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality)
    return out.getvalue()


def percent(text: str) -> float:
    """The first percentage in a text."""
    found = re.search(r"([\d.]+)\s*%", text)
    assert found, f"no percentage in {text!r}"
    return float(found[1])
