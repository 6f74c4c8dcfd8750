"""The documentation as a site: it builds without a warning, nothing in it leads nowhere or to another host when it is read."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from fanlight.explainers.registry import MODULES

LARGEST = 30_000
PAGES = [m.rpartition(".")[2].replace("_", "-") for m in MODULES]


class Links(HTMLParser):
    """What a page leads to, loads, and can be led to inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.leads: set[str] = set()
        self.loads: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[k] for k in ("id", "name") if given.get(k)}
        if tag == "a" and given.get("href"):
            self.leads.add(given["href"])
        if tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.loads.add(given["src"])
        rels = set((given.get("rel") or "").split())
        if tag == "link" and rels & {"stylesheet", "icon", "preload", "prefetch", "preconnect"}:
            self.loads.add(given["href"])


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("sphinx") is None or find_spec("myst_parser") is None or find_spec("furo") is None:
        pytest.skip("the site is built by Sphinx: pip install 'fanlight[docs]'")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", root / "docs", out]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    found = {}
    for path in site.rglob("*.html"):
        found[path] = Links()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_document_is_a_page_that_the_navigation_reaches(root, site, pages):
    documents = {p.relative_to(root / "docs").with_suffix("") for p in (root / "docs").rglob("*.md")}
    documents -= {Path("decisions/0000-template")}
    assert len(documents) > 40
    missing = {str(d) for d in documents if not (site / d).with_suffix(".html").exists()}
    assert missing == set()
    start = site / "index.html"
    reached = {
        (start.parent / unquote(urlsplit(href).path)).resolve() for href in pages[start].leads if "://" not in href
    }
    methods = site / "methods" / "index.html"
    assert methods.resolve() in reached
    reached |= {(methods.parent / unquote(urlsplit(h).path)).resolve() for h in pages[methods].leads if "://" not in h}
    lost = {str(d) for d in documents if (site / d).with_suffix(".html").resolve() not in reached}
    assert {d for d in lost if not d.startswith("decisions/")} == set()


def test_all_links_inside_the_site_resolve(pages):
    broken = []
    for path, links in pages.items():
        for href in links.leads | links.loads:
            parts = urlsplit(href)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                broken.append(f"{path.name}: {href}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                broken.append(f"{path.name}: no place {href}")
    assert broken == []


def test_reading_it_asks_no_other_host(site, pages):
    asked = {f"{p.name}: {src}" for p, links in pages.items() for src in links.loads if urlsplit(src).netloc}
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        asked |= {
            f"{sheet.name}: {url}" for url in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", text)
        }
    assert asked == set()


@pytest.mark.parametrize("name", PAGES)
def test_a_method_page_says_all_that_it_must(root, name):
    text = (root / "docs" / "methods" / f"{name}.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert [
        h
        for h in ("What it computes", "How to read it", "How it misleads", "Parameters", "Source")
        if h not in headings
    ] == []
    caption = re.search(r"<!-- figure -->\n\n(.*?)\n\n<!-- /figure -->", text, re.S)
    assert caption, "run: make figures"
    picture = root / "docs" / "figures" / f"{name}.webp"
    if picture.exists():
        assert f"(../figures/{name}.webp)" in caption[1]
    else:
        assert "no picture here: no model that ships with Fanlight fits" in caption[1]


def test_pictures_are_small_shown_and_not_empty(root):
    figures = sorted((root / "docs" / "figures").iterdir())
    assert len(figures) > 15
    text = "".join(p.read_text() for p in [root / "README.md", *(root / "docs").rglob("*.md")])
    for path in figures:
        assert path.stat().st_size <= LARGEST, path.name
        assert f"figures/{path.name})" in text, path.name
        with Image.open(path) as image:
            assert image.width >= 700 and all(lo < 60 and hi > 200 for lo, hi in image.convert("RGB").getextrema())
