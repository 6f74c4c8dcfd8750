"""Text in pictures: the face that comes with Pillow, so that no system font is needed.

It has ASCII and little more: letters lose their marks, and what still has no glyph is dropped. Pages keep exact names.
"""

from __future__ import annotations

import functools
import unicodedata
from bisect import bisect_right

from PIL import ImageDraw, ImageFont

GLYPHS = frozenset(map(chr, range(0x20, 0x7F))) | set("“”‘’…·±°")
SPELLED = str.maketrans(
    {
        "\u2212": "-",
        "–": "-",
        "—": "-",
        "×": "x",
        "ß": "ss",
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "æ": "ae",
        "Æ": "Ae",
    }
)

Font = ImageFont.FreeTypeFont


@functools.cache
def font(size: int) -> Font:
    face = ImageFont.load_default(size)
    if not isinstance(face, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType; install a Pillow wheel, which has it")
    return face


def drawable(text: str) -> str:
    """`text` in the letters that the face has."""
    bare = "".join(c if c in GLYPHS else unicodedata.normalize("NFKD", c) for c in text.translate(SPELLED))
    return " ".join("".join(c if c in GLYPHS else " " if c.isspace() else "" for c in bare).split())


def fit(draw: ImageDraw.ImageDraw, text: str, face: Font, width: float) -> str:
    """`text`, drawable, cut with an ellipsis to `width` pixels."""
    text = drawable(text)
    if draw.textlength(text, face) <= width:
        return text
    fits = bisect_right(range(len(text)), width, key=lambda n: draw.textlength(text[:n] + "…", face)) - 1
    return text[: max(0, fits)].rstrip() + "…"
