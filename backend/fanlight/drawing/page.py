"""The share page: a frozen snapshot as one plain HTML document. No Dash, no request to another host, complete without JavaScript.

The API serves the pictures beside it: `share_image` draws them, `preview.preview` the one that a messenger shows.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fanlight.artifact import Artifact
from fanlight.drawing.base import Legend
from fanlight.drawing.number import day, digits, percent, signed
from fanlight.drawing.section import Section, section
from fanlight.drawing.trust import score

TEMPLATES = Path(__file__).parent / "templates"
CSS = (TEMPLATES / "share.css").read_text("utf-8")
JS = (TEMPLATES / "share.js").read_text("utf-8")


def source(text: str) -> str:
    """What a Content-Security-Policy says of an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


CLOSED = "base-uri 'none'; form-action 'none'"
IN_FILE = f"default-src 'none'; img-src 'self' data:; style-src {source(CSS)}; script-src {source(JS)}; {CLOSED}"
POLICY = f"{IN_FILE}; frame-ancestors 'none'"
"""Content-Security-Policy that both pages are served with."""


def share_page(
    snapshot: Mapping[str, Any],
    *,
    maps: Sequence[Artifact | None],
    base: str,
    token_path: str,
    images: Callable[[int, str], bytes | None] | None = None,
) -> str:
    """The page of a share.

    Args:
        snapshot: {"explanations": [...], "view": {...}, "created": s, "expires": s, "title": ""}. An explanation is a
            `wire.Explanation` as JSON with "reading", "misleads", "method_title", "paper" (text, or {citation, link}), "world" (a
            `wire.WorldScore` as JSON).
        maps: of each explanation the artifact over the picture, or None where it is gone: the page then says so.
        base: scheme and host that others see, for the preview's address, for example https://fanlight.example.org.
        token_path: path of this page with any prefix; its pictures are at `{token_path}/{n}/{name}`, n from 0 and
            name one of `pictures.NAMES`, and at `{token_path}/preview.png`.
        images: PNG of (n, name). Where given they are embedded: the page is one self-contained file that never expires.

    Raises:
        InvalidField: a view that says nothing drawable (`scene.Style.of`).
    """

    def address(n: int, name: str) -> str | None:
        return f"{token_path}/{n}/{name}" if images is None else _data(images(n, name))

    sections = [
        section(record, drawn, snapshot.get("view") or {}, functools.partial(address, n))
        for n, (record, drawn) in enumerate(zip(snapshot["explanations"], maps, strict=True))
    ]
    expires = snapshot.get("expires") if images is None else None
    page = {
        "title": _title(snapshot, sections),
        "description": sections[0].description,
        "preview": f"{base.rstrip('/')}{token_path}/preview.png" if images is None else None,
        "policy": IN_FILE if images else None,
        "frozen": day(snapshot["created"]),
        "expires": day(expires) if expires else None,
        "sections": sections,
    }
    return environment().get_template("share.html").render(page=page, css=Markup(CSS), js=Markup(JS))


def gone_page() -> str:
    """The page of a link that is unknown, expired or revoked: the same bytes for all three."""
    return environment().get_template("gone.html").render(css=Markup(CSS))


def _data(blob: bytes | None) -> str | None:
    return None if blob is None else "data:image/png;base64," + base64.b64encode(blob).decode()


def _title(snapshot: Mapping[str, Any], sections: Sequence[Section]) -> str:
    if len(sections) == 1:
        return sections[0].question
    return str(snapshot.get("title") or f"{sections[0].question} and {len(sections) - 1} more")


@functools.cache
def environment() -> Environment:
    """That of all plain pages: everything is escaped, and a name that is not there is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"ends": _end, "cell": _cell, "score": score, "percent": percent}
    return made


def _end(value: float, legend: Legend) -> str:
    return signed(value) if legend.lo < 0 else digits(value)


def _cell(value: Any) -> str:
    return digits(value) if isinstance(value, float) else str(value)
