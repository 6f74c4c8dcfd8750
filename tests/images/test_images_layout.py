"""Files that are small and of few pixels, and would still take a reader minutes or gigabytes."""

from __future__ import annotations

import io
import resource
import struct
import time

import numpy as np
import pytest
import skimage.data
from PIL import Image

from fanlight import images
from fanlight.errors import BadRequest, UnreadableInput

LIMITS = {"max_bytes": 64 << 20, "max_pixels": 40_000_000}
EXIF = b"Exif\0\0II*\0\x08\0\0\0"


def refused(blob: bytes, **limits: int) -> str:
    """The sentence, which must come at once and without the memory that the file asks for."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(UnreadableInput) as caught:
        images.decode(blob, **{**LIMITS, **limits})
    assert time.process_time() - start < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 200 << 10
    assert caught.value.hint and caught.value.message.endswith(".")
    return caught.value.message


def jpeg(size: tuple[int, int], repeats: int, mode: str = "L") -> bytes:
    """Progressive, its last scan repeated."""
    out = io.BytesIO()
    Image.new(mode, size, 128 if mode == "L" else (9, 99, 200)).save(out, "JPEG", progressive=True)
    blob = out.getvalue()
    last = blob.rindex(b"\xff\xda")
    return blob[:last] + blob[last:-2] * repeats + blob[-2:]


def segment(code: int, data: bytes) -> bytes:
    return bytes((0xFF, code)) + struct.pack(">H", len(data) + 2) + data


def tags(entries: list[tuple[int, int, int, int]]) -> bytes:
    return struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries) + bytes(4)


@pytest.mark.parametrize("repeats", [101, 300, 5000])
def test_a_jpeg_that_repeats_a_scan_is_refused(repeats):
    assert "100 times" in refused(jpeg((64, 64), repeats))


def test_a_large_jpeg_may_have_fewer_scans_than_a_small_one(make):
    blob = jpeg((640, 640), 40)
    assert images.decode(blob, **LIMITS).pixels.shape == (640, 640, 3)
    assert "times, too often" in refused(blob, max_pixels=410_000)


def test_a_scan_hidden_behind_a_stray_marker_in_coded_data_is_counted():
    blob = jpeg((64, 64), 300)
    first = blob.index(b"\xff\xda") + 12
    assert "100 times" in refused(blob[:first] + b"\xff\x02\xff\xf0" + blob[first:])


@pytest.mark.parametrize(("format", "mode"), [("JPEG", "L"), ("JPEG", "RGB"), ("JPEG", "CMYK"), ("MPO", "RGB")])
def test_progressive_jpeg_as_encoders_write_it_is_read_at_the_largest_size(make, format, mode):
    photo = Image.fromarray(skimage.data.chelsea()).convert(mode)
    more = {"save_all": True, "append_images": [photo]} if format == "MPO" else {}
    blob = make.file(photo, format, progressive=True, **more)
    decoded = images.decode(blob, max_bytes=1 << 20, max_pixels=photo.width * photo.height)
    assert decoded.pixels.shape == (photo.height, photo.width, 3)


def test_jpeg_inside_mpo_is_counted_too(make):
    photo = Image.new("L", (64, 64))
    blob = make.file(photo, "MPO", progressive=True, save_all=True, append_images=[photo])
    end = blob.index(b"\xff\xd9")
    last = blob.rindex(b"\xff\xda", 0, end)
    assert "times" in refused(blob[:last] + blob[last:end] * 300 + blob[end:])


def test_jpeg_inside_tiff_has_the_same_bound(make):
    side = 2048
    base = {256: side, 257: side, 258: 8, 259: 7, 262: 1, 273: 130, 277: 1, 278: side, 279: 0}

    def file(repeats: int) -> bytes:
        data = jpeg((side, side), repeats)
        at = len(make.tiff(base, b""))
        return make.tiff({**base, 273: at, 279: len(data)}, data)

    assert images.decode(file(1), **LIMITS).pixels.shape == (side, side, 3)
    refused(file(90))


def test_arithmetic_coding_is_refused(make):
    blob = make.file(Image.new("L", (8, 8)), "JPEG").replace(b"\xff\xc0", b"\xff\xc9")
    assert "arithmetic" in refused(blob)


@pytest.mark.parametrize(
    "filler",
    [b"\xff" * 2_000_000, b"\xff\x00" * 1_000_000, b"\0" * 2_000_000, b"\xff\xd0" * 500_000],
    ids=["fill", "stuffed", "junk", "restarts"],
)
def test_a_jpeg_padded_before_its_picture_is_refused(make, filler):
    blob = make.file(Image.new("L", (8, 8)), "JPEG")
    assert "metadata" in refused(blob[:2] + b"\xff\xfe\0\2" + filler + blob[2:])


@pytest.mark.parametrize("part", [segment(0xFE, b""), segment(0xED, bytes(10_000)), segment(0xE1, EXIF)])
def test_a_jpeg_of_endless_segments_is_refused(make, part):
    blob = make.file(Image.new("L", (8, 8)), "JPEG")
    assert "metadata" in refused(blob[:2] + part * 5000 + blob[2:])


def test_large_metadata_of_a_real_size_is_read(make):
    photo = Image.new("RGB", (8, 8))
    blob = make.file(photo, "JPEG", comment=b"c" * 60_000)
    profile = segment(0xE2, b"ICC_PROFILE\0\1\1" + bytes(60_000))
    assert images.decode(blob[:2] + profile * 200 + blob[2:], **LIMITS).pixels.shape == (8, 8, 3)


def shared(count: int, size: int) -> bytes:
    """A directory of tags which all name the same bytes."""
    return tags([(1000 + i, 7, size, 8) for i in range(count)])


def test_exif_tags_that_share_their_bytes_are_refused_or_ignored(make):
    block = EXIF + shared(4000, 15_000)
    blob = make.file(Image.new("L", (8, 8)), "JPEG")
    assert "declare more" in refused(blob[:2] + segment(0xE1, block) + blob[2:])
    blob = make.file(Image.new("L", (8, 8)), "PNG")
    blob = blob[:33] + make.chunk(b"eXIf", block[6:]) + blob[33:]
    assert "EXIF block cannot be read" in images.decode(blob, **LIMITS).notes[0]


def test_a_tiff_whose_tags_share_their_bytes_is_refused():
    assert "declare more" in refused(b"II*\0\x08\0\0\0" + shared(4000, 900_000) + bytes(1_000_000))
    assert "lists 60000" in refused(b"II*\0\x08\0\0\0" + shared(60_000, 4))


def test_a_tiff_whose_second_page_is_such_is_refused(make):
    first = make.file(Image.new("L", (8, 8)), "TIFF")
    at = struct.unpack("<I", first[4:8])[0]
    link = at + 2 + 12 * struct.unpack("<H", first[at : at + 2])[0]
    blob = first[:link] + struct.pack("<I", len(first)) + first[link + 4 :]
    assert "declare more" in refused(blob + shared(4000, 900_000) + bytes(1_000_000))


def test_a_tiff_cut_into_endless_strips_is_refused():
    rows = 1_000_000
    entries = [(256, 4, 1, 1), (257, 4, 1, rows), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    entries += [(273, 3, rows, 200), (278, 4, 1, 1), (279, 3, rows, 200)]
    assert "strips" in refused(b"II*\0\x08\0\0\0" + tags(entries) + b"\x08\0" * (rows + 200))


def test_a_tiff_whose_tiles_reach_far_out_of_the_picture_is_refused(make):
    base = {256: 30_000, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: 16, 323: 2_000_000, 324: 200, 325: 10}
    assert "tiles" in refused(make.tiff(base))


def test_a_tiled_picture_smaller_than_a_tile_is_read(make):
    packed = make.file(Image.new("L", (512, 512), 9), "TIFF", compression="tiff_deflate", tile=(512, 512))
    assert images.decode(packed, **LIMITS).pixels.shape == (512, 512, 3)


@pytest.mark.parametrize("name", [b"prVt", b"tEXt", b"IDAT"])
def test_a_png_cut_into_endless_chunks_is_refused(make, name):
    blob = make.png(1, 1, 8, 0, b"\0\x07")
    at = blob.index(b"IDAT") - 4
    assert "chunks" in refused(blob[:at] + make.chunk(name, b"") * 100_000 + blob[at:])


@pytest.mark.parametrize("part", [b"\x21\xfe\1x\0", b"\x21\xfe" + b"\1x" * 1_000 + b"\0", b"\x21\xff\1x\0", b"\1"])
@pytest.mark.parametrize("before", [True, False], ids=["first", "after"])
def test_a_gif_of_endless_extensions_is_refused(make, part, before):
    blob = make.file(Image.new("L", (8, 8)), "GIF")
    at = blob.index(b"\x2c") if before else len(blob) - 1
    assert "blocks" in refused(blob[:at] + part * 10_000 + blob[at:])


def test_a_gif_with_its_picture_in_tiny_blocks_is_refused(make):
    blob = make.file(Image.new("L", (8, 8)), "GIF")
    assert "blocks" in refused(blob[:-2] + b"\1x" * 600_000 + blob[-2:])


def test_an_animation_with_comments_is_read_as_before(make):
    frames = [Image.fromarray(np.full((20, 30), v, np.uint8)) for v in (0, 200)]
    blob = make.file(frames[0], "GIF", save_all=True, append_images=frames[1:], comment=b"c" * 50_000)
    decoded = images.decode(blob, **LIMITS)
    assert decoded.pixels.max() == 0 and "several pictures" in decoded.notes[-1]


@pytest.mark.parametrize(
    "head", [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"II*\0", b"II+\0", b"MM\0*", b"MM\0+"]
)
def test_noise_behind_any_magic_is_a_refusal_in_time(head):
    rng = np.random.default_rng(0)
    for size in (0, 1, 9, 100, 10_000, 1_000_000):
        start = time.process_time()
        with pytest.raises(BadRequest):
            images.decode(head + rng.bytes(size), **LIMITS)
        assert time.process_time() - start < 2
