"""What the views share: the scene around an artifact, a map over its picture, its legend, its table.

The server draws; a view places the drawing, prints its scale, and says in words and in a table what it shows. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from fanlight.wire import ArtifactRef, Explanation, Job
from fanlight_ui.session import href, src
from fanlight_ui.views.numbers import digits, signed


@dataclass(frozen=True)
class Scene:
    """The surroundings of an artifact.

    Args:
        input: id of the picture under a map.
        edits: of the explanation; hidden regions are marked on the picture.
        slot: which panel of the page this is; part of the ids.
        lo, hi: a scale shared with other panels, or None for the map's own.
        size: longer side of the pictures in pixels.
        under: address of the picture, where it is not that of the input: one that a model drew.
    """

    input: str
    edits: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    slot: int = 0
    lo: float | None = None
    hi: float | None = None
    size: int = 512
    under: str = ""

    @classmethod
    def of(cls, record: Explanation, **more: Any) -> Scene:
        return cls(input=record.input, edits=record.edits, **more)


class View(Protocol):
    def __call__(self, ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
        """`told`: what GET /artifacts/{digest} says: meta, legend, sentence, table."""
        ...


def picture(input: str, box: Sequence[float] | None = None, size: int = 512) -> str:
    """Address of the stored picture, cropped to `box` where given."""
    return href(f"/api/v1/inputs/{input}/image.jpg", box=",".join(f"{v:g}" for v in box) if box else None, size=size)


def render(ref: ArtifactRef, scene: Scene, *, lo: float | None = None, hi: float | None = None) -> str:
    """Address of the drawing of an artifact at its own resolution: the browser scales it, which is faster to make and to send."""
    lo, hi = scene.lo if lo is None else lo, scene.hi if hi is None else hi
    scale = {} if lo is None or hi is None else {"lo": repr(float(lo)), "hi": repr(float(hi))}
    return address(ref, "render.png", **scale)


def address(ref: ArtifactRef, what: str, **query: str) -> str:
    """Of the drawing or the numbers of an artifact, whose own address may have a query."""
    path, _, asked = ref.url.partition("?")
    every = "&".join(filter(None, (asked, urlencode(query))))
    return f"{src(path)}/{what}" + (f"?{every}" if every else "")


def overlay_id(slot: int) -> dict[str, Any]:
    """The id of a map's drawing, so that its scale can be changed."""
    return {"type": "overlay", "slot": slot}


def legend_id(slot: int) -> dict[str, Any]:
    return {"type": "legend", "slot": slot}


def over_picture(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    """A map over the picture it explains. Hover and the arrow keys read the stored numbers; assets/hover.js does that from the data attributes."""
    meta = told.get("meta", ref.meta)
    box = [float(v) for v in meta["box"]]
    sentence = told.get("sentence", "")
    data = {
        "data-raw": address(ref, "raw"),
        "data-signed": "1" if meta.get("signed") else "",
        "data-unit": ref.unit or meta.get("unit", ""),
        "data-picture": scene.input,
        "data-box": ",".join(f"{v:g}" for v in box),
        "tabIndex": 0,
        "role": "img",
        "aria-label": f"{sentence} Arrow keys read single pixels.".strip(),
    }
    layers = [
        html.Img(src=scene.under or picture(scene.input, box, scene.size), alt="", className="under"),
        html.Img(id=overlay_id(scene.slot), src=render(ref, scene), alt="", className="over"),
        *[hidden(region, box) for region in hidden_regions(scene.edits)],
        html.Span(className="cross", **{"aria-hidden": "true"}),
        html.Span(className="pixel", **{"aria-hidden": "true"}),
    ]
    return html.Div(
        layers, className="map", style={"aspectRatio": f"{box[2] - box[0]:g} / {box[3] - box[1]:g}"}, **data
    )


def seen(record: Explanation) -> list[float] | None:
    """The part of the picture that the model saw, in its pixels; None where no artifact lies over it."""
    return next(([float(v) for v in a.meta["box"]] for a in record.artifacts if "box" in a.meta), None)


def hidden_regions(edits: Sequence[Mapping[str, Any]]) -> list[Sequence[float]]:
    """The rectangles that edits took out of the picture, in its pixels."""
    return [e["mask_region"] for e in edits if "mask_region" in e]


def hidden(region: Sequence[float], box: Sequence[float]) -> Component | None:
    """The mark of a hidden rectangle, as far as it lies within `box`; None where no part of it does."""
    w, h = box[2] - box[0], box[3] - box[1]
    x0, y0 = max(region[0], box[0]), max(region[1], box[1])
    x1, y1 = min(region[2], box[2]), min(region[3], box[3])
    if x1 <= x0 or y1 <= y0:
        return None
    place = {
        "left": f"{100 * (x0 - box[0]) / w:.3f}%",
        "top": f"{100 * (y0 - box[1]) / h:.3f}%",
        "width": f"{100 * (x1 - x0) / w:.3f}%",
        "height": f"{100 * (y1 - y0) / h:.3f}%",
    }
    return html.Span(className="hidden-region", style=place, title="hidden from the model")


def scale(legend: Mapping[str, Any], slot: int) -> Component:
    """The colours with their ends and unit."""
    return html.Div(scale_parts(legend), id=legend_id(slot), className="scale")


def scale_parts(legend: Mapping[str, Any]) -> list[Component]:
    """What stands in `scale`; apart, because a shared scale replaces it."""
    number = signed if legend["lo"] < 0 else digits
    lo, hi = number(legend["lo"], 2), number(legend["hi"], 2)
    return [
        html.Span(
            className="colours",
            style={"backgroundImage": f"linear-gradient(to right, {', '.join(legend['stops'])})"},
            **{"aria-hidden": "true"},
        ),
        html.Span(f"{legend.get('lo_label', '')} {lo}".strip(), className="lo"),
        html.Span(legend.get("unit", ""), className="unit"),
        html.Span(f"{hi} {legend.get('hi_label', '')}".strip(), className="hi"),
    ]


def table(told: Mapping[str, Any], title: str = "Regions as a table") -> Component | None:
    """The numbers of a drawing in a disclosure; None where there are none."""
    shown = told.get("table") or {}
    rows = shown.get("rows") or []
    if not rows:
        return None
    head = html.Thead(html.Tr([html.Th(c, scope="col") for c in shown["columns"]]))
    body = html.Tbody([html.Tr([html.Td(_cell(v)) for v in row]) for row in rows])
    return html.Details(
        [html.Summary(title), html.Div(html.Table([head, body]), className="table")], className="disclosure"
    )


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    return str(value) if isinstance(value, (str, int)) else digits(float(value))


def meter(job: Job) -> Component:
    """How far a job has come, as a bar. assets/progress.js moves it with the events of the stream."""
    done = 100 * job.progress
    return html.Div(
        html.Div(className="fill", style={"width": f"{done:.0f}%"}),
        className="meter",
        role="progressbar",
        **{
            "aria-valuenow": f"{done:.0f}",
            "aria-valuemin": "0",
            "aria-valuemax": "100",
            "aria-label": job.title or "Progress",
        },
    )
