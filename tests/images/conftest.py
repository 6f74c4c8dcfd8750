"""Files as strangers make them."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image


class Make:
    """Bytes of picture files, well-formed and not."""

    @staticmethod
    def file(image: Image.Image | np.ndarray, format: str, **options: Any) -> bytes:
        out = io.BytesIO()
        (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(out, format, **options)
        return out.getvalue()

    @staticmethod
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    @classmethod
    def png(cls, width: int, height: int, depth: int, colour: int, rows: bytes, extra: bytes = b"") -> bytes:
        """Colour types: 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA. Rows begin with their filter byte."""
        head = cls.chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
        body = cls.chunk(b"IDAT", zlib.compress(rows, 9)) + cls.chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + head + extra + body

    @staticmethod
    def tiff(tags: dict[int, int], data: bytes = bytes(64)) -> bytes:
        """Tags of type LONG; `data` begins right behind them."""
        out = b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags))
        out += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
        return out + bytes(4) + data

    @classmethod
    def webp(cls, width: int, height: int) -> bytes:
        """An animation whose canvas has this size and whose only frame has 4 x 4 pixels."""
        small = cls.file(Image.new("RGB", (4, 4)), "WEBP", lossless=True)[12:]
        frame = bytes(6) + (3).to_bytes(3, "little") * 2 + bytes(4) + small
        canvas = bytes([2, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        parts = ((b"VP8X", canvas), (b"ANIM", bytes(6)), (b"ANMF", frame))
        body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data for name, data in parts)
        return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.fixture
def make() -> type[Make]:
    return Make
