"""The picture that a messenger shows for a link: 1200 x 630, readable at a third of that."""

from __future__ import annotations

from PIL import Image, ImageDraw

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.decoding import Pixels
from fanlight.drawing import lettering, scene
from fanlight.drawing.number import output
from fanlight.drawing.places import short
from fanlight.drawing.scene import PLAIN, Style
from fanlight.drawing.trust import badge

SIZE = (1200, 630)
TILE, MARGIN = 420, 40
PAPER, CARD, INK, QUIET, LINE, ACCENT = "#FBFBF9", "#FFFFFF", "#1B1D21", "#5C626D", "#E4E4DF", "#0B7A75"
TONES = {"good": ("#E6F3EA", "#1E5E3A"), "warn": ("#FBF1DC", "#7A4B06"), "quiet": ("#F1F1ED", "#5C626D")}


def preview(record: wire.Explanation, pixels: Pixels, artifact: Artifact, *, style: Style = PLAIN) -> Image.Image:
    """Picture beside overlay, the best answers, the question, the method and how far to trust it."""
    canvas = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(canvas)
    for i, tile in enumerate(
        (scene.picture(pixels, artifact, size=TILE), scene.overlay(pixels, artifact, size=TILE, style=style))
    ):
        canvas.paste(tile, (i * (TILE + 4) + (TILE - tile.width) // 2, (TILE - tile.height) // 2))
    _answers(canvas, draw, record)
    _words(draw, record)
    return canvas


def mark(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: str) -> None:
    """The fanlight: a half-round window with radiating bars. (x, y) is the middle of its sill."""
    width = round(radius / 8)
    draw.arc((x - radius, y - radius, x + radius, y + radius), 180, 360, colour, width)
    draw.arc((x - radius * 0.38, y - radius * 0.38, x + radius * 0.38, y + radius * 0.38), 180, 360, colour, width)
    draw.line((x - radius, y, x + radius, y), colour, width)
    for dx, dy in ((-0.7071, -0.7071), (0, -1), (0.7071, -0.7071)):
        start, end = radius * 0.38, radius * 0.95
        draw.line((x + dx * start, y + dy * start, x + dx * end, y + dy * end), colour, width)


def _answers(canvas: Image.Image, draw: ImageDraw.ImageDraw, record: wire.Explanation) -> None:
    left, width = 2 * TILE + 4 + MARGIN, SIZE[0] - 2 * TILE - 4 - 2 * MARGIN
    large = Image.new("RGB", (256, 160), PAPER)
    mark(ImageDraw.Draw(large), 128, 140, 112, ACCENT)
    canvas.paste(large.resize((64, 40), Image.Resampling.LANCZOS), (left - 4, 28))
    draw.text((left + 72, 62), "Fanlight", INK, lettering.font(34), anchor="ls", stroke_width=0.4)
    for i, answer in enumerate(record.prediction[:3]):
        y, face = 116 + i * 96, lettering.font(27)
        chance = output(answer.probability, answer.logit, answer.unit)
        room = width - draw.textlength(chance, face) - 12
        draw.text((left, y), lettering.fit(draw, short(answer.name), face, room), INK, face, anchor="la")
        draw.text((left + width, y), chance, INK, face, anchor="ra")
        if answer.probability is None:  # a value is no share of anything
            continue
        draw.rounded_rectangle((left, y + 44, left + width, y + 58), 4, "#EBEBE6")
        filled = round(width * answer.probability)
        if filled > 2:
            draw.rounded_rectangle((left, y + 44, left + filled, y + 58), 4, ACCENT if i == 0 else "#8A8F98")


def _words(draw: ImageDraw.ImageDraw, record: wire.Explanation) -> None:
    width = SIZE[0] - 2 * MARGIN
    name = lettering.drawable(short(record.target_name))
    title = f"Why “{name}”?" if name else "Why?"
    face = lettering.font(60)
    draw.text((MARGIN, 496), lettering.fit(draw, title, face, width), INK, face, anchor="ls", stroke_width=0.8)
    face = lettering.font(30)
    said = lettering.fit(draw, f"{record.explainer_title} · {record.model_name}", face, width)
    draw.text((MARGIN, 546), said, QUIET, face, anchor="ls")
    trust = badge(record.trust)
    back, ink = TONES[trust.tone]
    face = lettering.font(26)
    text = lettering.fit(draw, trust.text, face, width - 76)
    end = MARGIN + 62 + draw.textlength(text, face)
    draw.rounded_rectangle((MARGIN, 566, end, 610), 22, back)
    circle = (MARGIN + 18, 579, MARGIN + 36, 597)
    draw.ellipse(circle, fill=ink if trust.tone == "good" else None, outline=ink, width=2)
    if trust.tone == "warn":  # half full: the tone is told by shape too
        draw.pieslice(circle, 90, 270, fill=ink)
    draw.text((MARGIN + 46, 588), text, ink, face, anchor="lm")
