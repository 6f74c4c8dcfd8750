"""Bytes of an upload -> pixels, once, as a person expects them. The only place that reads a stranger's file.

Allow-lists come before decoding: format, size, mode, compression. What a person would not expect is noted
(docs/inputs.md lists the notes).
"""

from __future__ import annotations

import io
import os
import threading
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageCms, UnidentifiedImageError
from PIL.Image import Transpose

from fanlight import layout
from fanlight.errors import BadRequest, TooLarge, UnreadableInput, shorten

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF")
"""Raster formats with readers that start no other program. EPS, PDF, SVG, PSD, FITS and the rest are never tried."""

TIFF_COMPRESSIONS = frozenset(
    "raw tiff_lzw tiff_adobe_deflate tiff_deflate packbits jpeg group3 group4 tiff_ccitt".split()
)
MODES = frozenset("1 L LA La P PA RGB RGBA RGBa RGBX CMYK YCbCr I;16 I;16B I;16L".split())
TILE_WIDTH, TILE_HEIGHT, BITS = 322, 323, 258  # TIFF tags
ORIENTATION = 0x0112
HEX_EXIF = "Raw profile type exif"  # how ImageMagick puts EXIF into PNG
UPRIGHT = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
ELSEWHERE = {
    b"%PDF": "PDF",
    b"8BPS": "Photoshop",
    b"%!PS": "PostScript",
    b"<svg": "SVG",
    b"<?xml": "XML",
    b"<!DOC": "HTML",
    b"<html": "HTML",
    b"SIMPLE": "FITS",
}
STRIP = 256
PASSES = 20
"""Scans that a JPEG of the most pixels allowed may have: encoders write at most 18. A smaller one may have more."""

# libtiff's own bound, for JPEG inside of TIFF; it allows 100 otherwise.
os.environ["LIBTIFF_JPEG_MAX_ALLOWED_SCAN_NUMBER"] = str(PASSES)

# Pillow's own guard, process-wide, at the largest picture that settings allow: beyond it `open` itself refuses.
Image.MAX_IMAGE_PIXELS = 400_000_000
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)

_decoders = threading.BoundedSemaphore(2)  # a picture of 40 megapixels takes some 500 MB for a moment


@dataclass(frozen=True)
class Picture:
    """Decoded.

    Args:
        pixels: (h, w, 3) uint8 RGB, writable, contiguous.
        notes: what decoding did that a person may want to know, as sentences.
    """

    pixels: Pixels
    notes: list[str] = field(default_factory=list)


def decode(blob: bytes, *, max_bytes: int, max_pixels: int) -> Picture:
    """The first picture in `blob`, upright, in sRGB, on white.

    Raises:
        TooLarge: more than `max_bytes` bytes, or than `max_pixels` pixels; known before decoding.
        UnreadableInput: no picture of an allowed format, cut off, damaged, or of values without a defined look.
    """
    if len(blob) > max_bytes:
        given, allowed = _sizes(len(blob), max_bytes)
        raise TooLarge(
            f"The file has {given}; at most {allowed} are allowed.",
            given=len(blob),
            allowed={"max_bytes": max_bytes},
            hint="Save it smaller, for example as JPEG.",
        )
    if not blob:
        raise _unreadable("The file is empty.", 0)
    with _decoders:
        try:
            return _decode(blob, max_pixels)
        except BadRequest:
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as e:
            raise _too_many(None, max_pixels) from e
        except layout.Implausible as e:
            raise _unreadable(str(e), len(blob)) from e
        except UnidentifiedImageError as e:
            raise _unreadable(f"The file is not a picture that can be read{_guess(blob)}.", blob[:16].hex(" ")) from e
        except ValueError as e:
            bomb = "MAX_TEXT" in str(e)
            raise _unreadable("Its metadata unpacks to an implausible size." if bomb else _damaged(e), len(blob)) from e
        except Exception as e:  # readers raise whatever a broken file trips them with: OSError, SyntaxError, ...
            raise _unreadable(_damaged(e), len(blob)) from e


def _decode(blob: bytes, max_pixels: int) -> Picture:
    notes: list[str] = []
    scans = layout.check(blob)
    with Image.open(io.BytesIO(blob), formats=FORMATS) as image:
        width, height = image.size
        if width * height > max_pixels:
            raise _too_many((width, height), max_pixels)
        if scans * width * height > PASSES * max_pixels:
            hint = "Save it as PNG, or as JPEG that is not progressive."
            raise _unreadable(
                f"The JPEG passes over the picture {scans} times, too often for its size.", scans, hint=hint
            )
        _check(image, blob, max_pixels)
        turned = getattr(image, "tag_v2", {}).get(ORIENTATION, 1) != 1  # Pillow turns TIFF itself, and nothing else
        image.load()
        profile = image.info.get("icc_profile")
        turn = _orientation(image, notes)
        flat = _rgb(image, _depth(image, blob), profile, notes)
        pixels = to_pixels(flat.transpose(UPRIGHT[turn]) if turn in UPRIGHT else flat)
        if turn in UPRIGHT or turned:
            notes.append("Turned upright as its EXIF orientation says.")
        if _several(image):  # last, because looking for the second picture replaces the first
            notes.append("The file holds several pictures; the first is used.")
    return Picture(pixels, notes)


def _check(image: Image.Image, blob: bytes, max_pixels: int) -> None:
    """Refuses, before decoding, what would decode slowly, largely, or to something without a defined look."""
    if image.mode not in MODES:
        why = f"The picture holds {image.mode} values, which have no defined brightness."
        raise _unreadable(why, image.mode, hint="Save it with 8 or 16 bits per channel.")
    if image.format == "PNG":
        layout.png_filled(blob)
    long_header, run_length = blob[14] >= 40, blob[30] in (1, 2)
    if image.format == "BMP" and long_header and run_length:
        raise _unreadable("Run-length encoded BMP is not read.", "BMP", hint="Save it as PNG.")
    if image.format == "TIFF":
        compression = str(image.info.get("compression"))
        tags = getattr(image, "tag_v2", {})
        tile = int(tags.get(TILE_WIDTH, 1)), int(tags.get(TILE_HEIGHT, 1))
        if compression not in TIFF_COMPRESSIONS:
            hint = "Save it as PNG, or as TIFF with LZW or Deflate."
            raise _unreadable(f"TIFF with {compression} compression is not read.", compression, hint=hint)
        if tile[0] * tile[1] > max_pixels or _covered(image.size, tile) > 2 * max_pixels:
            raise _unreadable("The TIFF declares tiles larger than the largest picture allowed.", list(tile))


def _covered(size: tuple[int, int], tile: tuple[int, int]) -> int:
    """Pixels of all tiles: those at the right and the bottom may reach far out of the picture, and are decoded whole."""
    across, down = (-(-s // max(1, t)) * t for s, t in zip(size, tile, strict=True))
    return across * down


def _depth(image: Image.Image, blob: bytes) -> int:
    """Bits per channel in the file; Pillow itself says so only for some modes."""
    if image.format == "PNG":
        return blob[24]
    if image.format == "TIFF":
        bits = getattr(image, "tag_v2", {}).get(BITS, (8,))
        return int(max(bits)) if isinstance(bits, tuple) else int(bits)
    return 8


def _orientation(image: Image.Image, notes: list[str]) -> int:
    try:
        if len(str(image.info.get(HEX_EXIF, ""))) > 1 << 16:
            del image.info[HEX_EXIF]
        layout.directory(bytes(image.info.get("exif", b"")).removeprefix(b"Exif\0\0"))
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # a broken EXIF block is no reason to refuse the picture
        notes.append("Its EXIF block cannot be read; the orientation is taken as upright.")
        return 1


def _rgb(image: Image.Image, depth: int, profile: bytes | None, notes: list[str]) -> Image.Image:
    """Any allowed mode -> RGB."""
    if image.mode.startswith("I;16"):
        return _grey16(image, depth, profile, notes)
    if depth > 8:
        # Readers deliver the high byte of 16-bit colour: at most one level of 255 from the rounded value.
        notes.append(f"Scaled from {depth} to 8 bits per channel.")
        if image.mode in ("L", "RGB") and image.info.pop("transparency", None) is not None:
            notes.append("Its transparent colour is ignored, because it is given in 16 bits.")
    if image.mode in ("1", "P", "PA", "LA", "La", "RGBa", "RGBX", "YCbCr") or image.has_transparency_data:
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if profile:
        image = _srgb(image, profile, notes)
    if image.mode == "RGBA":
        image = _on_white(image, notes)
    if image.mode == "CMYK":
        notes.append("Converted from CMYK without a colour profile; colours are approximate.")
    return image if image.mode == "RGB" else image.convert("RGB")


def _grey16(image: Image.Image, depth: int, profile: bytes | None, notes: list[str]) -> Image.Image:
    full = (1 << depth) - 1
    values = np.array(image, dtype=np.uint16)
    brightest = int(values.max())
    notes.append(f"Scaled from {depth} to 8 bits per channel.")
    if 0 < brightest < full // 8:
        notes.append(f"It may look dark: its brightest value is {brightest} of {full}.")
    if profile:
        notes.append("Its colour profile is ignored.")
    level = (np.arange(full + 1, dtype=np.uint32) * 255 + full // 2) // full
    grey = level.astype(np.uint8)[np.minimum(values, full)]
    clear = image.info.get("transparency")
    if isinstance(clear, int) and (values == clear).any():
        grey[values == clear] = 255
        notes.append("Transparent parts are laid on white.")
    return Image.fromarray(grey).convert("RGB")


def _srgb(image: Image.Image, profile: bytes, notes: list[str]) -> Image.Image:
    """Colours of an embedded profile -> sRGB; a profile that does not fit or cannot be read is ignored with a note."""
    try:
        given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        name = ImageCms.getProfileDescription(given).strip()
        if "srgb" in name.lower():
            return image
        to = "RGBA" if image.mode == "RGBA" else "RGB"
        # 24 megapixels take about 0.3 s; perceptual intent is what viewers use.
        turned = ImageCms.profileToProfile(image, given, ImageCms.createProfile("sRGB"), outputMode=to)
    except Exception:  # the profile is a stranger's bytes: lcms and Pillow report with several types
        notes.append("Its colour profile cannot be used and is ignored.")
        return image
    if turned is None:
        return image
    notes.append(f"Colours converted to sRGB from “{shorten(name, 60)}”.")
    return turned


def _on_white(image: Image.Image, notes: list[str]) -> Image.Image:
    alpha = image.getchannel("A")
    if alpha.getextrema() == (255, 255):
        return image.convert("RGB")
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=alpha)
    notes.append("Transparent parts are laid on white.")
    return white


def _several(image: Image.Image) -> bool:
    if image.format != "TIFF":
        return bool(getattr(image, "is_animated", False))
    try:
        image.seek(1)  # counting pages would walk a whole hostile file
    except Exception:
        return False
    return True


def to_pixels(image: Image.Image) -> Pixels:
    """(h, w, 3); by strips, because numpy's way through bytes takes two more copies of the whole."""
    width, height = image.size
    pixels = np.empty((height, width, 3), np.uint8)
    for y in range(0, height, STRIP):
        pixels[y : y + STRIP] = np.asarray(image.crop((0, y, width, min(y + STRIP, height))))
    return pixels


def _sizes(given: int, allowed: int) -> tuple[str, str]:
    """In MiB, as settings and the gate say it; in bytes where that would be the same number twice."""
    short = f"{given / 2**20:.4g} MiB", f"{allowed / 2**20:.4g} MiB"
    return short if short[0] != short[1] else (f"{given:,} bytes", f"{allowed:,} bytes")


def _mega(count: int) -> str:
    return f"{count / 1e6:.3g}"


def _too_many(size: tuple[int, int] | None, max_pixels: int) -> TooLarge:
    count = "too many pixels"
    if size:
        pixels = size[0] * size[1]
        same = _mega(pixels) == _mega(max_pixels)
        count = f"{size[0]} x {size[1]} = " + (f"{pixels:,} pixels" if same else f"{_mega(pixels)} megapixels")
    return TooLarge(
        f"The picture has {count}; at most {_mega(max_pixels)} megapixels are allowed.",
        given=list(size) if size else None,
        allowed={"max_pixels": max_pixels},
        hint="Scale it down; models look at a few hundred pixels a side.",
    )


def _unreadable(message: str, given: Any, *, hint: str = "Save it as PNG or JPEG and send that.") -> UnreadableInput:
    return UnreadableInput(message, given=given, allowed=list(FORMATS), hint=hint)


def _damaged(error: Exception) -> str:
    return f"The picture is damaged or cut off: {shorten(str(error) or type(error).__name__, 120).rstrip('.')}."


def _guess(blob: bytes) -> str:
    head = blob[:64].lstrip()
    for magic, name in ELSEWHERE.items():
        if head.startswith(magic):
            return f"; it looks like {name}"
    if blob[4:8] == b"ftyp":
        return "; it looks like HEIC, AVIF or a video"
    return "; it looks like text" if head.isascii() and head.decode("ascii").isprintable() else ""
