"""One explanation as a PDF to print or file: the words and numbers of the share page, with its pictures and every fact of its provenance."""

from __future__ import annotations

import functools
import io
import unicodedata
from collections.abc import Mapping
from html import escape
from typing import Any

from fanlight.drawing import base, figure
from fanlight.drawing.number import day, digits
from fanlight.drawing.section import Section
from fanlight.images import png

INK, QUIET, LINE, ACCENT = figure.INK, figure.QUIET, figure.LINE, "#0B7A75"
SPELLED = str.maketrans({"●": "", "◐": "", "◌": "", "○": "", "\u202f": "\u00a0"})


def pdf(section: Section, pictures: Mapping[str, bytes], *, created: float) -> bytes:
    """A4 pages.

    Args:
        pictures: PNG by name of `pictures.NAMES`: picture.png and overlay.png, and curves.png where trust was measured.
        created: seconds since 1970 of the export.
    """
    from reportlab.lib.colors import HexColor
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.units import mm
    from reportlab.platypus import Image, KeepTogether, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

    style = _styles()

    def say(words: str, name: str = "body") -> Any:
        return Paragraph(escape(_legible(words)), style[name])

    def drawn(blob: bytes, width: float, ratio: float) -> Any:
        return Image(io.BytesIO(blob), width, width * ratio)

    def rows_of(table: base.Table) -> Any:
        rows = [[say(c, "small") for c in table.columns]]
        rows += [[say(_cell(v), "small") for v in row] for row in table.rows[:40]]
        return _table(rows, [wide / len(table.columns)] * len(table.columns))

    wide = 172 * mm - 12  # a frame keeps 6 points free at either side
    side = wide / 2 - 2 * mm
    pair = Table(
        [
            [
                drawn(pictures["picture.png"], side, section.height / section.width),
                drawn(pictures["overlay.png"], side, section.height / section.width),
            ]
        ],
        [side + 2 * mm, side + 2 * mm],
        style=TableStyle([("LEFTPADDING", (0, 0), (-1, -1), 0), ("RIGHTPADDING", (0, 0), (-1, -1), 0)]),
    )
    flow: list[Any] = [
        say(section.question, "title"),
        say(" · ".join(filter(None, (section.method, section.answer))), "quiet"),
        Spacer(1, 3 * mm),
        pair,
    ]
    if section.legend is not None:
        lo, hi = figure.ends(section.legend)
        colours = Image(io.BytesIO(png(figure.band(section.legend.stops, (900, 30)))), wide, 3 * mm)
        words = Table(
            [[say(lo, "small"), say(section.unit, "middle"), say(hi, "right")]],
            [wide / 4, wide / 2, wide / 4],
            style=TableStyle([("LEFTPADDING", (0, 0), (-1, -1), 0), ("RIGHTPADDING", (0, 0), (-1, -1), 0)]),
        )
        flow += [Spacer(1, 2 * mm), colours, words]
    flow += [say("In words", "head"), say(section.sentence)]
    if section.inside is not None:
        flow += [say("Inside the region", "head"), rows_of(section.inside)]
    if section.edited:
        flow.append(say(section.edited))
    if section.answers:
        rows = [[say(a.full), say(a.chance, "right")] for a in section.answers]
        flow += [say("What the model says", "head"), _table(rows, [wide - 30 * mm, 30 * mm])]
    known = [say(words, name) for words, name in trusted(section)]
    trust: list[Any] = [say("How far to trust it", "head"), *known[:3]]
    if "curves.png" in pictures:
        trust.append(drawn(pictures["curves.png"], 110 * mm, section.curves_height / section.curves_width))
    flow += [KeepTogether(trust), *known[3:]]
    for title, words in (("How to read it", section.reading), ("How it misleads", section.misleads)):
        if words:
            flow += [say(title, "head"), say(words)]
    if section.table is not None:
        flow.append(say("Regions as a table", "head"))
        flow.append(rows_of(section.table))
        if len(section.table.rows) > 40:
            flow.append(say(f"The first 40 of {len(section.table.rows)} rows; the others are in the CSV.", "quiet"))
    flow += [say("Where the numbers come from", "head")]
    facts = [[say(name, "small"), say(full or value, "small")] for name, value, full in section.facts]
    if section.paper:
        facts.append([say("method published in", "small"), say(section.paper, "small")])
    flow.append(_table(facts, [36 * mm, wide - 36 * mm]))

    def foot(canvas: Any, document: Any) -> None:
        canvas.setFont("Vera", 7.5)
        canvas.setFillColor(HexColor(QUIET))
        canvas.drawString(19 * mm, 10 * mm, f"Fanlight · exported {day(created)}")
        canvas.drawRightString(A4[0] - 19 * mm, 10 * mm, f"page {document.page}")

    out = io.BytesIO()
    document = SimpleDocTemplate(
        out,
        pagesize=A4,
        leftMargin=19 * mm,
        rightMargin=19 * mm,
        topMargin=16 * mm,
        bottomMargin=18 * mm,
        title=section.question,
        author="Fanlight",
        subject=section.description,
        lang="en",
    )
    document.build(flow, onFirstPage=foot, onLaterPages=foot)
    return out.getvalue()


def trusted(section: Section) -> list[tuple[str, str]]:
    """What the report says of trust, each with its style: the badge, the measures beside their floors, what was checked further, and what the
    method scores where the truth is known."""
    said = [
        (section.badge.text.capitalize() + ".", "body"),
        (section.badge.meaning, "body"),
        (section.measures, "body"),
    ]
    for row in section.rows:
        if row.name == "faithfulness":
            said.append((f"On the same picture: {row.floors}.", "quiet"))
        else:
            said += [(row.line, "body"), (row.detail, "quiet")]
    if section.world is not None:
        said += [(section.world.sentence, "body"), (section.world.detail, "quiet")]
    return [(words, name) for words, name in said if words]


def _table(rows: list[list[Any]], widths: list[float]) -> Any:
    from reportlab.lib.colors import HexColor
    from reportlab.platypus import Table, TableStyle

    look = TableStyle(
        [
            ("LINEBELOW", (0, 0), (-1, -1), 0.4, HexColor(LINE)),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 2),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
        ]
    )
    return Table(rows, widths, style=look)


@functools.cache
def _glyphs() -> frozenset[int]:
    """Code points of the face that comes with reportlab; registers it."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    for name, file in (("Vera", "Vera.ttf"), ("VeraBd", "VeraBd.ttf")):
        pdfmetrics.registerFont(TTFont(name, file))
    return frozenset(pdfmetrics.getFont("Vera").face.charToGlyph)


def _legible(text: str) -> str:
    """`text` in letters that the face has: others lose their marks, and what still has no glyph is dropped."""
    known = _glyphs()
    text = text.translate(SPELLED)
    return "".join(
        c if ord(c) in known else "".join(d for d in unicodedata.normalize("NFKD", c) if ord(d) in known) for c in text
    )


def _styles() -> dict[str, Any]:
    from reportlab.lib.colors import HexColor
    from reportlab.lib.enums import TA_CENTER, TA_RIGHT
    from reportlab.lib.styles import ParagraphStyle

    _glyphs()
    body = ParagraphStyle("body", fontName="Vera", fontSize=9.5, leading=14, textColor=HexColor(INK), splitLongWords=1)
    small = ParagraphStyle("small", body, fontSize=8, leading=11)
    return {
        "body": body,
        "small": small,
        "right": ParagraphStyle("right", small, alignment=TA_RIGHT),
        "middle": ParagraphStyle("middle", small, alignment=TA_CENTER, textColor=HexColor(QUIET)),
        "quiet": ParagraphStyle("quiet", body, textColor=HexColor(QUIET)),
        "title": ParagraphStyle("title", body, fontName="VeraBd", fontSize=18, leading=24),
        "head": ParagraphStyle(
            "head", body, fontName="VeraBd", fontSize=11, leading=15, spaceBefore=9, spaceAfter=3, keepWithNext=1
        ),
    }


def _cell(value: Any) -> str:
    return digits(value) if isinstance(value, float) else str(value)
