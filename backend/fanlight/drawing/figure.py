"""The figure of an explanation: picture and map side by side with scale, words and provenance, as SVG and as PNG from one layout."""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from PIL import Image, ImageDraw

from fanlight import images
from fanlight.drawing import lettering
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.colour import rgb
from fanlight.drawing.number import digits, signed
from fanlight.drawing.section import Section

WIDTH, MARGIN, GAP = 1320, 32, 16
PAPER, INK, QUIET, LINE = "#FFFFFF", "#1B1D21", "#5C626D", "#E4E4DF"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Text:
    """A line of text; (x, y) is where its baseline starts, has its middle or ends."""

    x: float
    y: float
    words: str
    size: int
    colour: str = INK
    anchor: str = "start"
    bold: bool = False


@dataclass(frozen=True)
class Tile:
    """A picture, as the PNG that the pages show."""

    x: float
    y: float
    width: int
    height: int
    blob: bytes


@dataclass(frozen=True)
class Band:
    """The colours of a scale from left to right."""

    x: float
    y: float
    width: int
    height: int
    stops: tuple[str, ...]


Mark = Text | Tile | Band


def ends(legend: Legend) -> tuple[str, str]:
    """The ends of a scale as every page prints them, with their words."""
    number = signed if legend.lo < 0 else digits
    lo, hi = number(legend.lo), number(legend.hi)
    return f"{legend.lo_label} {lo}".strip(), f"{hi} {legend.hi_label.partition(' (')[0]}".strip()


def provenance(section: Section) -> str:
    """Where the numbers come from, in a line that may be wrapped."""
    return "Fanlight · " + " · ".join(f"{name}: {value}" for name, value, _ in section.facts)


def layout(section: Section, picture: bytes, overlay: bytes) -> tuple[int, list[Mark]]:
    """(height, marks) on a canvas of WIDTH. `picture`, `overlay`: PNG of equal size, side by side."""
    side = (WIDTH - 2 * MARGIN - GAP) // 2
    height = round(side * section.height / section.width)
    inner = WIDTH - 2 * MARGIN
    lines = functools.partial(_wrapped, width=inner)
    marks: list[Mark] = [
        Text(MARGIN, 58, _cut(section.question, 34, inner), 34, bold=True),
        Text(MARGIN, 92, _cut(" · ".join(filter(None, (section.method, section.answer))), 20, inner), 20, QUIET),
        Tile(MARGIN, 116, side, height, picture),
        Tile(MARGIN + side + GAP, 116, side, height, overlay),
    ]
    y = 116 + height + 14
    if section.legend is not None:
        left = MARGIN + side + GAP
        lo, hi = ends(section.legend)
        marks += [
            Band(left, y, side, 14, section.legend.stops),
            Text(left, y + 36, lo, 18),
            Text(left + side / 2, y + 36, _cut(section.unit, 18, side / 2), 18, QUIET, "middle"),
            Text(left + side, y + 36, hi, 18, anchor="end"),
        ]
    y += 74
    for line in lines(section.sentence, 20):
        marks.append(Text(MARGIN, y, line, 20))
        y += 28
    if section.inside is not None:
        found, y = _table(section.inside, y + 6)
        marks += found
    for line in lines(section.badge.text.capitalize() + ".", 20):
        marks.append(Text(MARGIN, y, line, 20))
        y += 28
    y += 6
    for line in lines(provenance(section), 15):
        marks.append(Text(MARGIN, y, line, 15, QUIET))
        y += 21
    return y + MARGIN - 15, marks


def _table(table: Table, y: int) -> tuple[list[Mark], int]:
    """The rows of a table under each other, numbers to the right; and where it ends."""
    first, column = 460, 190
    marks: list[Mark] = []
    for n, row in enumerate((table.columns, *table.rows)):
        colour = QUIET if n == 0 else INK
        marks.append(Text(MARGIN, y, _cut(str(row[0]), 18, first), 18, colour))
        for k, cell in enumerate(row[1:], 1):
            words = digits(cell) if isinstance(cell, float) else str(cell)
            marks.append(Text(MARGIN + first + k * column, y, _cut(words, 18, column - GAP), 18, colour, "end"))
        y += 26
    return marks, y + 10


def svg(section: Section, picture: bytes, overlay: bytes) -> str:
    """A drawing whose text and scale stay sharp and editable; the two pictures are inside."""
    height, marks = layout(section, picture, overlay)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="{SANS}" aria-labelledby="title desc">',
        f'<title id="title">{escape(section.question)}</title><desc id="desc">{escape(section.alt)}</desc>',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
    ]
    for mark in marks:
        match mark:
            case Text():
                weight = ' font-weight="650"' if mark.bold else ""
                parts.append(
                    f'<text x="{mark.x:g}" y="{mark.y:g}" font-size="{mark.size}" fill="{mark.colour}" '
                    f'text-anchor="{mark.anchor}"{weight}>{escape(mark.words)}</text>'
                )
            case Tile():
                data = base64.b64encode(mark.blob).decode()
                parts.append(
                    f'<image x="{mark.x:g}" y="{mark.y:g}" width="{mark.width}" height="{mark.height}" '
                    f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
                )
            case Band():
                last = len(mark.stops) - 1
                stops = "".join(f'<stop offset="{i / last:g}" stop-color="{c}"/>' for i, c in enumerate(mark.stops))
                parts.append(f'<defs><linearGradient id="scale">{stops}</linearGradient></defs>')
                parts.append(
                    f'<rect x="{mark.x:g}" y="{mark.y:g}" width="{mark.width}" height="{mark.height}" fill="url(#scale)" stroke="{LINE}"/>'
                )
    return "\n".join([*parts, "</svg>", ""])


def png(section: Section, picture: bytes, overlay: bytes) -> bytes:
    height, marks = layout(section, picture, overlay)
    canvas = Image.new("RGB", (WIDTH, height), PAPER)
    draw = ImageDraw.Draw(canvas)
    for mark in marks:
        match mark:
            case Text():
                anchor = {"start": "ls", "middle": "ms", "end": "rs"}[mark.anchor]
                draw.text(
                    (mark.x, mark.y),
                    lettering.drawable(mark.words),
                    mark.colour,
                    lettering.font(mark.size),
                    anchor=anchor,
                    stroke_width=0.5 if mark.bold else 0,
                )
            case Tile():
                tile = Image.open(io.BytesIO(mark.blob)).convert("RGB")
                canvas.paste(
                    tile.resize((mark.width, mark.height), Image.Resampling.LANCZOS), (int(mark.x), int(mark.y))
                )
            case Band():
                canvas.paste(band(mark.stops, (mark.width, mark.height)), (int(mark.x), int(mark.y)))
    return images.png(canvas, level=6)


def band(stops: Sequence[str], size: tuple[int, int]) -> Image.Image:
    """The colours of a scale as a picture of (width, height)."""
    row = Image.new("RGB", (len(stops), 1))
    row.putdata([tuple(round(255 * float(v)) for v in rgb(stop)) for stop in stops])
    width, height = size
    # The first and last colour stand at the very ends, so half a sample is cut off at each.
    return row.resize((width, height), Image.Resampling.BILINEAR, box=(0.5, 0, len(stops) - 0.5, 1))


def _width(size: int) -> Callable[[str], float]:
    """Measures text; a reader's own face may be a little wider than the one measured with, so 6 % are added."""
    face = lettering.font(size)
    return lambda words: 1.06 * float(face.getlength(lettering.drawable(words)))


def _cut(words: str, size: int, width: float) -> str:
    measure = _width(size)
    if measure(words) <= width:
        return words
    while words and measure(words + "…") > width:
        words = words[:-1]
    return words.rstrip() + "…"


def _wrapped(words: str, size: int, width: float) -> list[str]:
    measure, lines = _width(size), [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if measure(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(_cut(word, size, width))
    return [line for line in lines if line]
