"""How a picture file is laid out, walked before any reader opens it: readers take time and memory by what a file
*declares*, not only by its pixels. Every walk here takes a bounded number of steps.
"""

from __future__ import annotations

import re
import struct
import zlib

SCANS = 100
"""Passes over a JPEG. Encoders write about ten, never more than twenty."""
SEGMENTS = 4096
"""JPEG segments, GIF extension blocks, TIFF tags: real files have tens to hundreds."""
METADATA = 16 << 20
CHUNKS = 1 << 16
STRIPS = 50_000
PIECE = 1 << 18
"""Bytes that are unpacked at once to count them."""

# In coded data FF stands before 0 or a restart (D0 to D7), so any other pair is a marker; fill bytes are further FFs.
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_WITH_LENGTH = frozenset({*range(0xC0, 0xD0), *range(0xDA, 0xF0), 0xFE} - {0xC8, 0xDE})
_SCAN, _END, _EXIF = 0xDA, 0xD9, 0xE1
_TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the colour type of a PNG
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)  # x, y, dx, dy
_PARTS = frozenset({273, 279, 324, 325})  # offsets and lengths of strips and tiles


class Implausible(ValueError):
    """What no camera or program writes; the message is a sentence."""


def check(blob: bytes) -> int:
    """Walks the file. Returns how often its coded data passes over the picture: the scans of a JPEG, 1 for the rest.

    Raises:
        Implausible: more parts than a real file has.
    """
    if blob.startswith(b"\xff\xd8\xff"):
        return _jpeg(blob)
    if blob.startswith(b"\x89PNG\r\n\x1a\n"):
        _png(blob)
    elif blob.startswith((b"GIF87a", b"GIF89a")):
        _gif(blob)
    elif blob.startswith((b"II", b"MM")):
        directory(blob, _directory(blob, directory(blob)))
    return 1


def _jpeg(blob: bytes) -> int:
    """As libjpeg walks: a segment is skipped by its length, and what follows a scan's header is searched."""
    scans = segments = described = skipped = 0
    exif = b""
    at = 2
    while found := _MARKER.search(blob, at):
        code = blob[found.end() - 1]
        skipped += 0 if scans else found.start() - at
        if code == _END:
            break
        at = found.end()
        segments += 1
        if code in _FRAMES and code > 0xC8:
            raise Implausible("JPEG with arithmetic coding is not read.")
        if code in _WITH_LENGTH:
            length = int.from_bytes(blob[at : at + 2], "big")
            described += 0 if code == _SCAN else length
            if code == _EXIF and not scans and blob[at + 2 : at + 8] == b"Exif\0\0":
                exif += blob[at + 8 : at + length]
            at += length
        scans += code == _SCAN
        if scans > SCANS:
            raise Implausible(f"The JPEG passes over the picture more than {SCANS} times.")
        if segments > SEGMENTS or described > METADATA or skipped > CHUNKS:
            raise Implausible("The JPEG holds far more metadata than picture files do.")
    directory(exif)
    return scans


def _png(blob: bytes) -> None:
    at = 8
    for _ in range(CHUNKS):
        head = blob[at : at + 8]
        if len(head) < 8 or head.endswith(b"IEND"):
            return
        at += 12 + int.from_bytes(head[:4], "big")
    raise Implausible(f"The PNG is cut into more than {CHUNKS} chunks.")


def png_filled(blob: bytes) -> None:
    """Checks that the coded data unpack to as many bytes as the size needs: readers leave what is missing black, and say nothing.

    To be called once the size is known to be allowed: takes time by it, and memory by `PIECE`.

    Raises:
        Implausible: fewer bytes than the declared rows take.
        zlib.error: the coded data are damaged.
    """
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", blob[16:29])
    bits = depth * _CHANNELS.get(colour, 1)
    parts = [(width, height)]
    if interlaced:
        parts = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in _ADAM7 if x < width and y < height]
    needed = left = sum(h * (1 + -(-w * bits // 8)) for w, h in parts)
    unpack = zlib.decompressobj()
    at = 8
    while left > 0 and at + 8 <= len(blob) and blob[at + 4 : at + 8] != b"IEND":
        length = int.from_bytes(blob[at : at + 4], "big")
        data = blob[at + 8 : at + 8 + length] if blob[at + 4 : at + 8] == b"IDAT" else b""
        while data and left > 0 and not unpack.eof:
            left -= len(unpack.decompress(data, PIECE))
            data = unpack.unconsumed_tail
        while left > 0 and not unpack.eof and (rest := unpack.decompress(b"", PIECE)):
            left -= len(rest)
        at += 12 + length
    if left > 0:
        given = (needed - left) * 100 // needed
        raise Implausible(
            f"The PNG declares {height} rows and holds {given} % of their bytes: it is cut off or damaged."
        )


def _gif(blob: bytes) -> None:
    """To the second picture, which readers look for, too."""
    at = 13 + _palette(blob[10:11])
    extras = pieces = pictures = 0
    while at < len(blob) and blob[at] != 0x3B and pictures < 2:
        kind = blob[at]
        extras += 1
        if kind == 0x2C:
            pictures += 1
            at += 11 + _palette(blob[at + 9 : at + 10])
        elif kind == 0x21:
            at += 2
        else:
            at += 1
        while kind in (0x2C, 0x21) and pictures < 2 and at < len(blob):
            length = blob[at]
            at += 1 + length
            if length == 0:
                break
            extras += kind == 0x21
            pieces += 1
            if extras > SEGMENTS or pieces > 10 * STRIPS:
                break
        if extras > SEGMENTS or pieces > 10 * STRIPS:
            raise Implausible("The GIF is cut into far more blocks than picture files are.")


def _palette(flags: bytes) -> int:
    return 3 << (flags[0] & 7) + 1 if flags and flags[0] & 0x80 else 0


def directory(block: bytes, at: int | None = None) -> int:
    """Checks one directory of tags, of a TIFF file or an EXIF block: the first, or the one at `at`.

    Returns where its entries end. Readers copy each tag's values, so tags that share bytes multiply a file.

    Raises:
        Implausible: too many tags, strips or tiles, or tags whose values add up to more than there are bytes.
    """
    order, big = _order(block)
    start = _unpack(order, block, *((8, 8) if big else (4, 4))) if at is None else at
    head, step, inline = (8, 20, 8) if big else (2, 12, 4)
    count = _unpack(order, block, start, head) if start else 0
    if count > SEGMENTS:
        raise Implausible(f"A directory of the file lists {count} tags.")
    total = 0
    for entry in range(start + head, min(start + head + count * step, len(block)), step):
        tag, kind = _unpack(order, block, entry, 2), _unpack(order, block, entry + 2, 2)
        values = _unpack(order, block, entry + 4, inline)
        size = values * _TYPE_BYTES.get(kind, 0)
        total += size if size > inline else 0
        if tag in _PARTS and values > STRIPS:
            raise Implausible(f"The TIFF is cut into more than {STRIPS} strips or tiles.")
    if total > 2 * len(block):
        raise Implausible("The tags of the file declare more values than the file holds.")
    return start + head + count * step


def _directory(block: bytes, at: int) -> int:
    order, big = _order(block)
    return _unpack(order, block, at, 8 if big else 4)


def _order(block: bytes) -> tuple[str, bool]:
    return "<" if block[:2] == b"II" else ">", block[2:3] == b"\x2b"


def _unpack(order: str, block: bytes, at: int, size: int) -> int:
    """An unsigned number; 0 behind the end, where readers stop by themselves."""
    part = block[at : at + size]
    return int(struct.unpack(order + {2: "H", 4: "I", 8: "Q"}[size], part)[0]) if len(part) == size else 0
