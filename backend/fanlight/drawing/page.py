"""The share page: a frozen snapshot as one plain HTML document. No Dash, no request to another host, complete without JavaScript.

The API serves the pictures beside it: `share_image` draws them, `preview.preview` the one that a messenger shows.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fanlight.artifact import Artifact
from fanlight.drawing.base import Legend
from fanlight.drawing.number import day, digits, signed
from fanlight.drawing.section import Section, section

TEMPLATES = Path(__file__).parent / "templates"
CSS = (TEMPLATES / "share.css").read_text("utf-8")
JS = (TEMPLATES / "share.js").read_text("utf-8")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY = f"default-src 'none'; img-src 'self' data:; style-src {_source(CSS)}; script-src {_source(JS)}; base-uri 'none'; form-action 'none'"
"""Content-Security-Policy of both pages; as a header add `; frame-ancestors 'none'`."""


def share_page(
    snapshot: Mapping[str, Any],
    maps: Sequence[Artifact | None],
    *,
    base: str,
    token_path: str,
    images: Mapping[str, bytes] | None = None,
) -> str:
    """The page of a share.

    Args:
        snapshot: {"explanations": [...], "view": {...}, "created": s, "expires": s, "title": ""}. An explanation is a
            `wire.Explanation` as JSON with "reading", "misleads", "method_title", "paper" (a citation, or {citation, link}).
        maps: of each explanation the artifact that lies over the picture, or None where it is gone: the page then says so.
        base: scheme and host that others see, for the preview's absolute address, for example https://fanlight.example.org.
        token_path: path of this page with any prefix; pictures are at `{token_path}/{n}/{name}`, n from 0, name of `pictures.NAMES`.
        images: PNG by "{n}/{name}"; where given they are embedded, and the page is one self-contained file.
    """
    address = (lambda name: _data(images.get(name))) if images is not None else (lambda name: f"{token_path}/{name}")
    sections = [
        section(record, drawn, snapshot.get("view") or {}, functools.partial(_address, address, n))
        for n, (record, drawn) in enumerate(zip(snapshot["explanations"], maps, strict=True))
    ]
    page = {
        "title": _title(snapshot, sections),
        "description": sections[0].description,
        "preview": None if images is not None else f"{base.rstrip('/')}{token_path}/preview.png",
        "policy": POLICY if images is not None else None,
        "frozen": day(snapshot["created"]),
        "expires": day(snapshot["expires"]) if snapshot.get("expires") and images is None else None,
        "sections": sections,
    }
    return _environment().get_template("share.html").render(page=page, css=Markup(CSS), js=Markup(JS))


def gone_page() -> str:
    """The page of a link that is unknown, expired or revoked: the same bytes for all three."""
    return _environment().get_template("gone.html").render(css=Markup(CSS))


def _address(address: Any, n: int, name: str) -> str | None:
    found: str | None = address(f"{n}/{name}")
    return found


def _data(blob: bytes | None) -> str | None:
    return None if blob is None else "data:image/png;base64," + base64.b64encode(blob).decode()


def _title(snapshot: Mapping[str, Any], sections: Sequence[Section]) -> str:
    if len(sections) == 1:
        return sections[0].question
    return str(snapshot.get("title") or f"{sections[0].question} and {len(sections) - 1} more")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["ends"] = _end
    environment.filters["cell"] = _cell
    return environment


def _end(value: float, legend: Legend) -> str:
    return signed(value) if legend.lo < 0 else digits(value)


def _cell(value: Any) -> str:
    return digits(value) if isinstance(value, float) else str(value)
