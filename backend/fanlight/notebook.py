"""What a notebook shows of an explanation: its picture inline, and the numbers that the page shows. No script, no request to another host."""

from __future__ import annotations

import base64
from collections.abc import Callable
from html import escape
from typing import Any

from pydantic import PrivateAttr

from fanlight import wire
from fanlight.drawing.number import output
from fanlight.drawing.places import short
from fanlight.drawing.trust import badge
from fanlight.errors import FanlightError

SIZE = 384
Fetch = Callable[[str], bytes]


class Record(wire.Explanation):
    """A `wire.Explanation` as the client hands it out; equal to one with the same content."""

    _fetch: Fetch | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, record: wire.Explanation, fetch: Fetch) -> Record:
        """`fetch`: path below /api/v1 -> bytes; asked only when a notebook draws the record."""
        made = cls.model_construct(**dict(record))
        made._fetch = fetch
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, wire.Explanation) and dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash(self.id)

    def _repr_html_(self) -> str:
        return html(self, self._picture())

    def _picture(self) -> bytes | None:
        if self._fetch is None or self.state != "succeeded":
            return None
        try:
            return self._fetch(f"/explanations/{self.id}/overlay.png?size={SIZE}")
        except FanlightError:  # deleted meanwhile, or the server is away: the numbers are here
            return None


def html(record: wire.Explanation, picture: bytes | None) -> str:
    """A small table beside the picture; colours are inherited, so it fits a light and a dark notebook."""
    name = short(record.target_name)
    said: list[tuple[str, Any]] = [
        ("method", record.explainer_title),
        ("model", record.model_name),
        ("picture", record.input_name or record.input[:12]),
        *((p.name, output(p.probability, p.logit, p.unit, 1)) for p in record.prediction[:3]),
        ("trust", badge(record.trust).text),
        ("record", record.id),
    ]
    if record.state != "succeeded":
        said.insert(0, ("state", record.state))
    rows = "".join(
        f'<tr><th style="text-align:left;padding:2px 12px 2px 0;font-weight:600">{escape(str(k))}</th>'
        f'<td style="text-align:left;padding:2px 0">{escape(str(v))}</td></tr>'
        for k, v in said
        if v
    )
    shown = ""
    if picture is not None:
        data = base64.b64encode(picture).decode()
        shown = f'<img src="data:image/png;base64,{data}" alt="{escape(record.summary, quote=True)}" style="width:240px;max-width:100%;height:auto">'
    title = f"Why “{escape(name)}”?" if name else "Why?"
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">{shown}'
        f'<div style="max-width:36em"><strong>{title}</strong><p style="margin:4px 0">{escape(record.summary)}</p>'
        f"<table>{rows}</table></div></div>"
    )
