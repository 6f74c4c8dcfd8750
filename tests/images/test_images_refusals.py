"""What is not a picture, or too much of one, is refused in a sentence, without the memory it asks for."""

from __future__ import annotations

import functools
import resource
import struct
import zlib

import numpy as np
import pytest
import skimage.data
from PIL import Image

from fanlight import images
from fanlight.errors import BadRequest, TooLarge, UnreadableInput

LIMITS = {"max_bytes": 64 << 20, "max_pixels": 40_000_000}


def refusal(blob: bytes, kind: type[BadRequest], **limits: int) -> BadRequest:
    with pytest.raises(kind) as caught:
        images.decode(blob, **{**LIMITS, **limits})
    error = caught.value
    assert error.message.endswith(".") and error.allowed and error.hint and error.given is not None
    return error


@pytest.mark.parametrize(
    ("blob", "looks"),
    [
        (b"this is not a picture", "text"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "SVG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
        (b"%PDF-1.4\n\xff", "PDF"),
        (b"8BPS\0\x01" + bytes(40), "Photoshop"),
        (b"SIMPLE  =                    T" + bytes(100), "FITS"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "HEIC"),
    ],
)
def test_what_is_no_allowed_picture_is_named(blob, looks):
    assert looks in refusal(blob, UnreadableInput).message


@pytest.mark.parametrize(
    "blob", [b"", bytes(range(256)) * 40, b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0\x08\0\0\0", b"BM"]
)
def test_bytes_that_only_begin_like_a_picture_are_refused(blob):
    refusal(blob, UnreadableInput)


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("PNG", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "tiff_adobe_deflate"}),
        ("BMP", {}),
        ("GIF", {}),
    ],
)
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_a_file_cut_anywhere_is_refused(make, format, options):
    blob = make.file(skimage.data.chelsea(), format, **options)
    for percent in (1, 5, 20, 33, 50, 80, 95, 99):
        refusal(blob[: len(blob) * percent // 100], UnreadableInput)


@pytest.mark.parametrize("rows", [0, 1, 10, 99])
def test_a_png_that_declares_more_rows_than_it_holds_is_refused(make, rows):
    line = b"\0" + bytes(12)
    error = refusal(make.png(4, 100, 8, 2, line * rows), UnreadableInput)
    assert "declares 100 rows" in error.message
    assert images.decode(make.png(4, 100, 8, 2, line * 100), **LIMITS).pixels.shape == (100, 4, 3)


@pytest.mark.parametrize(("depth", "colour"), [(1, 0), (4, 0), (16, 0), (8, 2), (8, 4), (8, 6), (16, 6)])
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 5), (9, 17)])
def test_an_interlaced_png_is_counted_by_its_seven_passes(make, size, depth, colour):
    width, height = size
    bits = depth * {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    sizes = [(len(range(x, width, dx)), len(range(y, height, dy))) for x, y, dx, dy in passes]
    data = bytes(sum(h * (1 + (w * bits + 7) // 8) for w, h in sizes if w and h))

    def blob(data):
        plain = make.png(width, height, depth, colour, data)
        head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 1)
        return plain[:8] + make.chunk(b"IHDR", head) + plain[33:]

    assert images.decode(blob(data), **LIMITS).pixels.shape == (height, width, 3)
    refusal(blob(data[:-1]), UnreadableInput)


def test_a_png_whose_checksum_is_wrong_is_refused(make):
    blob = bytearray(make.file(skimage.data.chelsea(), "PNG"))
    blob[len(blob) // 2] ^= 0xFF
    refusal(bytes(blob), UnreadableInput)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF"])
@pytest.mark.filterwarnings("ignore")
def test_a_file_with_wrong_bytes_is_read_or_refused_and_nothing_else(make, format):
    rng = np.random.default_rng(0)
    whole = make.file(skimage.data.chelsea()[:40, :50], format)
    for _ in range(60):
        blob = bytearray(whole)
        for at in rng.integers(0, min(len(blob), 400), 4):
            blob[at] = rng.integers(0, 256)
        try:
            pixels = images.decode(bytes(blob), **LIMITS).pixels
        except BadRequest as refused:
            assert refused.message.endswith(".")
        else:
            assert pixels.ndim == 3 and pixels.dtype == np.uint8


def test_too_many_bytes_are_counted_before_anything_is_read():
    error = refusal(b"x" * 1001, TooLarge, max_bytes=1000)
    assert error.given == 1001 and error.allowed == {"max_bytes": 1000}


def rss() -> float:
    """Peak of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(("width", "height"), [(20_000, 20_000), (13_000, 13_000), (9_000, 9_000), (40_000_001, 1)])
def test_a_decompression_bomb_is_refused_by_its_size(make, width, height):
    packed = zlib.compressobj(9)
    line = b"\0" + bytes((width + 7) // 8)
    rows = b"".join(packed.compress(line) for _ in range(height)) + packed.flush()
    blob = make.png(width, height, 1, 0, b"")
    empty = make.chunk(b"IDAT", zlib.compress(b"", 9))
    before = rss()
    error = refusal(blob.replace(empty, make.chunk(b"IDAT", rows)), TooLarge)
    assert error.given == [width, height] and error.allowed == {"max_pixels": 40_000_000}
    assert rss() - before < 20


@pytest.mark.parametrize("size", [(19_000, 19_000), (60_000, 60_000), (16_000_000, 4_000)])
def test_a_webp_canvas_larger_than_allowed_is_refused_without_its_memory(make, size):
    before = rss()
    with pytest.raises((TooLarge, UnreadableInput)):  # libwebp itself refuses more than 2^32 pixels
        images.decode(make.webp(*size), **LIMITS)
    assert rss() - before < 20


def test_a_tiff_with_giant_tiles_is_refused(make):
    base = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: 60_000, 323: 60_000, 324: 200, 325: 10}
    assert "tiles" in refusal(make.tiff(base), UnreadableInput).message


def test_a_tiff_with_an_unusual_compression_is_refused_before_decoding(make):
    base = {256: 16, 257: 16, 258: 8, 259: 34925, 262: 1, 273: 150, 277: 1, 278: 16, 279: 10}
    assert "lzma" in refusal(make.tiff(base), UnreadableInput).message


def test_run_length_encoded_bmp_is_refused_because_it_decodes_slowly():
    head = struct.pack("<IiiHHIIiiII", 40, 6000, 6000, 1, 8, 1, 0, 0, 0, 256, 0)
    blob = b"BM" + struct.pack("<IHHI", 0, 0, 0, 54 + 1024) + head + bytes(1024) + b"\x01\x01" * 1000
    assert "BMP" in refusal(blob, UnreadableInput).message


@functools.cache
def zeros() -> bytes:
    """200 MB in 200 kB."""
    return zlib.compress(bytes(200_000_000), 9)


@pytest.mark.parametrize("name", [b"zTXt", b"iCCP", b"iTXt"])
def test_a_metadata_bomb_is_harmless(make, name):
    packed = zeros()
    head = b"a\0\1\0\0\0" if name == b"iTXt" else b"a\0\0"
    blob = make.png(1, 1, 8, 0, b"\0\x07", make.chunk(name, head + packed))
    before = rss()
    assert "metadata" in refusal(blob, UnreadableInput).message
    assert rss() - before < 20


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_without_a_defined_brightness_are_refused(make, dtype):
    error = refusal(make.file(Image.fromarray(np.ones((2, 2), dtype)), "TIFF"), UnreadableInput)
    assert "defined brightness" in error.message


def test_the_decoder_still_works_after_refusals(make):
    for _ in range(3):  # more than the decoders there are
        with pytest.raises(UnreadableInput):
            images.decode(b"no", **LIMITS)
    assert images.decode(make.png(1, 1, 8, 0, b"\0\x07"), **LIMITS).pixels.shape == (1, 1, 3)
