"""Prompts as inputs: words, perhaps with a picture of their own; on pages and in lists they stand as a card with the words."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from fanlight import images, wire
from fanlight.artifact import canonical, digest
from fanlight.drawing.lettering import drawable, font
from fanlight.errors import InvalidField
from fanlight.service import inputs
from fanlight.service.context import Context, Visitor

CARD = 256
INK, PAPER = (27, 29, 33), (255, 255, 255)


def register(context: Context, visitor: Visitor, asked: wire.Prompt) -> wire.Input:
    """The same words, with the same picture, are the same input. Errors: empty_prompt, unknown_input."""
    text = " ".join(asked.text.split())
    if not text:
        raise InvalidField(
            "The prompt is empty.", code="empty_prompt", given=asked.text, hint="Write what should be drawn."
        )
    content: dict[str, Any] = {"kind": "prompt", "text": text, "picture": asked.picture, "pixels": None}
    if asked.picture is None:
        pixels = card(text)
    else:
        picture = context.db.read(lambda c: inputs.find(c, visitor.workspace, str(asked.picture)))
        if picture.kind != "image":
            raise InvalidField(
                "The picture of a prompt is an uploaded one, not another prompt.",
                code="wrong_kind",
                given=asked.picture,
            )
        content["pixels"] = picture.blob
        pixels = images.load(context.blobs.get(picture.blob))
    blob = canonical(content)
    return inputs.save(
        context,
        visitor,
        ident=digest(blob),
        kind="prompt",
        name=text[:300],
        notes=[],
        pixels=pixels,
        original=context.blobs.put(blob),
        small=True,
    )


def card(text: str) -> images.Pixels:
    """(CARD, CARD, 3) uint8: the words in as large letters as fit."""
    image = Image.new("RGB", (CARD, CARD), PAPER)
    draw = ImageDraw.Draw(image)
    for size in (28, 22, 18, 15, 12):
        face, lines = font(size), [""]
        for word in drawable(text).split():
            longer = f"{lines[-1]} {word}".strip()
            if draw.textlength(longer, face) <= CARD - 40 or not lines[-1]:
                lines[-1] = longer
            else:
                lines.append(word)
        if len(lines) * size * 1.35 <= CARD - 40:
            break
    for n, line in enumerate(lines):
        draw.text((20, 20 + n * size * 1.35), line, INK, face)
    return np.asarray(image)
