"""Artifact kind `curves`: lines with bands, labelled on the lines, floors dashed.

A series is a floor where its name says "floor" or "random", or `meta["floors"]` lists it: grey, dashed, beneath.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from fanlight.artifact import Artifact
from fanlight.drawing import lettering
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.number import digits
from fanlight.errors import InvalidField

Array = np.ndarray[Any, np.dtype[Any]]
Point = tuple[float, float]
Rectangle = tuple[float, float, float, float]

WIDTH, ASPECT = 440, 0.62
FINE = 2  # drawn so many times larger, then reduced: Pillow does not smooth lines
INKS = {
    False: {
        "ink": "#1B1D21",
        "quiet": "#5C626D",
        "line": "#E4E4DF",
        "floor": "#6B717C",
        "band": "#5C626D26",
        "card": "#FFFFFF",
    },
    True: {
        "ink": "#ECEDEF",
        "quiet": "#9BA1AC",
        "line": "#2C3038",
        "floor": "#9BA1AC",
        "band": "#9BA1AC33",
        "card": "#1C1F25",
    },
}
SERIES = {
    False: ("#0B7A75", "#B2432F", "#8A5A0B", "#2B6CB0", "#6B4FA0", "#5C626D"),
    True: ("#4FC3BC", "#E58A78", "#E0B050", "#7FB0E3", "#B9A2E8", "#9BA1AC"),
}


@dataclass(frozen=True)
class Frame:
    """Data -> pixels."""

    left: float
    top: float
    right: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> Point:
        fx, fy = ((v - lo) / (hi - lo) for v, (lo, hi) in ((x, self.x), (y, self.y)))
        return self.left + fx * (self.right - self.left), self.bottom - fy * (self.bottom - self.top)


class Curves:
    kind = "curves"

    def legend(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,  # noqa: ARG002 (lines carry their own labels)
        lo: float | None = None,
        hi: float | None = None,
    ) -> Legend:
        """The vertical axis."""
        bottom, top = _range(artifact, lo, hi)
        return Legend(bottom, top, str(artifact.meta["y_label"]), "series", SERIES[False])

    def image(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,  # noqa: ARG002
        lo: float | None = None,
        hi: float | None = None,
        size: int | None = None,
        dark: bool = False,
    ) -> Image.Image:
        width = size or WIDTH
        k = FINE * width / WIDTH
        canvas = Image.new("RGB", (width * FINE, round(width * ASPECT) * FINE), INKS[dark]["card"])
        draw = ImageDraw.Draw(canvas, "RGBA")
        x, y_range = artifact.arrays["x"], _range(artifact, lo, hi)
        first, last = float(x.min()), float(x.max())
        x_range = (first, last) if first < last else (first - 1, first + 1)
        margin = max(draw.textlength(f"{v:g}", lettering.font(round(15 * k))) for v in _ticks(*y_range))
        frame = Frame(margin + 12 * k, 34 * k, canvas.width - 14 * k, canvas.height - 44 * k, x_range, y_range)
        _axes(draw, artifact, frame, k, INKS[dark])
        _lines(draw, artifact, frame, k, dark)
        return canvas.reduce(FINE)

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:  # noqa: ARG002
        """Mean over the curve, and where it begins, is halfway, and ends."""
        x, unit = artifact.arrays["x"], str(artifact.meta["y_label"])
        at = (0, len(x) // 2, len(x) - 1)
        heads = ("series", f"mean ({unit})", *(f"at {artifact.meta['x_label']} {digits(float(x[i]))}" for i in at))
        rows = [
            (name, *(float(f"{v:.3g}") for v in (mean(x, y), *(y[i] for i in at))))
            for name, y in zip(artifact.meta["series"], artifact.arrays["y"], strict=True)
        ]
        return Table(heads, tuple(sorted(rows, key=lambda row: row[0] in floors(artifact))))

    def detail(self, artifact: Artifact) -> dict[str, Any]:  # noqa: ARG002 (the picture says it all)
        return {}

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:  # noqa: ARG002
        parts = [f"{row[0]} {digits(row[1])}" for row in self.table(artifact).rows]
        return f"Mean {artifact.meta['y_label']} over the curve: {', '.join(parts)}."


def mean(x: Array, y: Array) -> float:
    """Area under the curve by trapezoids over its length; of a single point its value."""
    width = np.diff(x.astype(np.float64))
    return float(((y[1:] + y[:-1]) / 2 * width).sum() / width.sum()) if width.sum() > 0 else float(y[0])


def floors(artifact: Artifact) -> frozenset[str]:
    """Names of the series that are floors."""
    named = artifact.meta.get("floors", ())
    return frozenset(s for s in artifact.meta["series"] if s in named or "floor" in s.lower() or "random" in s.lower())


def _range(artifact: Artifact, lo: float | None, hi: float | None) -> tuple[float, float]:
    """Of the vertical axis: the caller's ends, else all bands fit and 0 is on it."""
    bottom = min(0.0, float(artifact.arrays["lo"].min())) if lo is None else lo
    top = max(0.0, float(artifact.arrays["hi"].max())) if hi is None else hi
    if not math.isfinite(bottom) or not math.isfinite(top) or (bottom >= top and (lo, hi) != (None, None)):
        raise InvalidField("The vertical axis needs two finite ends, the lower one first.", given=[str(lo), str(hi)])
    return (bottom, top) if bottom < top else (bottom, bottom + 1)


def _ticks(lo: float, hi: float) -> list[float]:
    """Three to six round numbers."""
    raw = (hi - lo) / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw)
    return [float(v) + 0.0 for v in np.arange(np.ceil(lo / step), np.floor(hi / step + 1e-9) + 1) * step]


def _axes(draw: ImageDraw.ImageDraw, artifact: Artifact, frame: Frame, k: float, ink: dict[str, str]) -> None:
    face, quiet = lettering.font(round(15 * k)), ink["quiet"]
    for value in _ticks(*frame.y):
        y = frame.at(frame.x[0], value)[1]
        draw.line([(frame.left, y), (frame.right, y)], fill=quiet if value == 0 else ink["line"], width=round(k))
        draw.text((frame.left - 8 * k, y), f"{value:g}", quiet, face, anchor="rm")
    width = frame.right - frame.left
    label = lettering.fit(draw, artifact.meta["y_label"], face, width)
    draw.text((frame.left, 8 * k), label, quiet, face, anchor="la")
    y = frame.bottom + 12 * k
    draw.text((frame.left, y), f"{frame.x[0]:.4g}", quiet, face, anchor="la")
    draw.text((frame.right, y), f"{frame.x[1]:.4g}", quiet, face, anchor="ra")
    label = lettering.fit(draw, artifact.meta["x_label"], face, width * 0.75)
    draw.text((frame.left + width / 2, y), label, quiet, face, anchor="ma")


def _lines(draw: ImageDraw.ImageDraw, artifact: Artifact, frame: Frame, k: float, dark: bool) -> None:
    ink, names, floor = INKS[dark], list(artifact.meta["series"]), floors(artifact)
    own = [s for s in names if s not in floor]
    colours = [ink["floor"] if s in floor else SERIES[dark][own.index(s) % len(SERIES[dark])] for s in names]
    middle, lower, upper = (_paths(artifact, frame, side) for side in ("y", "lo", "hi"))
    order = sorted(range(len(names)), key=lambda s: names[s] not in floor)  # floors first, beneath the others
    for s in order:
        if upper[s] != lower[s]:
            draw.polygon(upper[s] + lower[s][::-1], fill=ink["band"] if names[s] in floor else colours[s] + "22")
        for part in _dashes(middle[s], 7 * k, 5 * k) if names[s] in floor else [middle[s]]:
            draw.line(part, fill=colours[s], width=round(2.2 * k), joint="curve")
    bands = [(np.array(u), np.array(v)) for u, v in zip(upper, lower, strict=True)]
    taken: list[Rectangle] = []
    for s in reversed(order):
        # "deletion, random order" lies where it belongs; its last words are enough on the line.
        name = names[s].rsplit(", ", 1)[-1] if names[s] in floor else names[s]
        taken.append(_label(draw, name, bands, s, frame, taken, k))
        colour = ink["quiet"] if names[s] in floor else colours[s]
        draw.text(taken[-1][:2], lettering.drawable(name), colour, lettering.font(round(15 * k)), anchor="la")


def _paths(artifact: Artifact, frame: Frame, side: str) -> list[list[Point]]:
    x = artifact.arrays["x"]
    return [[frame.at(float(a), float(b)) for a, b in zip(x, row, strict=True)] for row in artifact.arrays[side]]


def _dashes(path: list[Point], on: float, off: float) -> list[list[Point]]:
    """A polyline cut into strokes of length `on` with gaps of `off`."""
    corners = np.array(path)
    along = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    strokes = []
    for start in np.arange(0, along[-1], on + off):
        cut = np.concatenate([[start], along[(along > start) & (along < start + on)], [min(start + on, along[-1])]])
        points = np.stack([np.interp(cut, along, corners[:, i]) for i in (0, 1)], axis=1)
        strokes.append([(float(px), float(py)) for px, py in points])
    return strokes


def _label(
    draw: ImageDraw.ImageDraw,
    name: str,
    bands: list[tuple[Array, Array]],
    own: int,
    frame: Frame,
    taken: list[Rectangle],
    k: float,
) -> Rectangle:
    """Where the name of a line stands: close to it, on no other name, as far from the other lines as can be.

    bands: per line its upper and lower edge as (T, 2) pixels; 40 places along the line are tried, above it and below.
    """
    width, height = draw.textlength(lettering.drawable(name), lettering.font(round(15 * k))), 17 * k
    start = frame.left + 4 * k
    best, chosen = -np.inf, (start, frame.top, start + width, frame.top + height)
    for x in np.linspace(start, max(start, frame.right - width), 40):
        near = np.linspace(x, x + width, 9)
        edges = [[np.interp(near, edge[:, 0], edge[:, 1]) for edge in band] for band in bands]
        above, below = float(edges[own][0].min()), float(edges[own][1].max())
        for top in (below + 5 * k, above - 5 * k - height):
            box = (float(x), top, float(x) + width, top + height)
            outside = top < frame.top - 4 * k or box[3] > frame.bottom - k
            if outside or any(_overlap(box, other, 4 * k) for other in taken):
                continue
            gaps = [float(np.maximum(up - box[3], box[1] - low).min()) for s, (up, low) in enumerate(edges) if s != own]
            crossed = sum(gap < 0 for gap in gaps)
            steep = below - above  # where a line is steep its name drifts away from it
            free = min([*gaps, 30 * k]) - 0.4 * steep - 200 * k * crossed
            if free > best:
                best, chosen = free, box
    return chosen


def _overlap(a: Rectangle, b: Rectangle, gap: float) -> bool:
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap
