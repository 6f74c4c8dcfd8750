"""A picture is decoded as a person expects it."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageCms

from fanlight import images

LIMITS = {"max_bytes": 64 << 20, "max_pixels": 40_000_000}
SCALED = "Scaled from 16 to 8 bits per channel."
WHITE = "Transparent parts are laid on white."


def row(blob: bytes) -> tuple[list[list[int]], list[str]]:
    picture = images.decode(blob, **LIMITS)
    assert picture.pixels.dtype == np.uint8 and picture.pixels.flags.writeable and picture.pixels.flags.c_contiguous
    return picture.pixels[0].tolist(), picture.notes


def test_an_rgb_png_comes_back_exactly(make):
    photo = skimage.data.chelsea()
    picture = images.decode(make.file(photo, "PNG"), **LIMITS)
    assert np.array_equal(picture.pixels, photo) and picture.notes == []


@pytest.mark.parametrize("format", images.decode.__globals__["FORMATS"])
def test_every_allowed_format_is_read(make, format):
    photo = skimage.data.chelsea()
    picture = images.decode(make.file(photo, format), **LIMITS)
    assert picture.pixels.shape == photo.shape
    assert np.abs(picture.pixels.astype(int) - photo).mean() < 8  # GIF has 256 colours


def test_a_picture_of_24_megapixels_is_read(make):
    photo = Image.fromarray(skimage.data.chelsea()).resize((6000, 4000))
    assert images.decode(make.file(photo, "JPEG"), **LIMITS).pixels.shape == (4000, 6000, 3)


def test_a_single_pixel_is_a_picture(make):
    assert row(make.png(1, 1, 8, 0, b"\0\x07")) == ([[7, 7, 7]], [])


def test_grey_of_1_4_and_8_bits_spans_black_to_white(make):
    assert row(make.png(3, 1, 1, 0, b"\0\x40"))[0] == [[0] * 3, [255] * 3, [0] * 3]
    assert row(make.png(3, 1, 4, 0, b"\0\x0f\x80"))[0] == [[0] * 3, [255] * 3, [136] * 3]


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_16_bit_grey_is_scaled_by_its_depth_not_cut_off_or_stretched(make, format):
    levels = np.array([[0, 128, 129, 32896, 65535]], np.uint16)
    assert row(make.file(levels, format)) == ([[v] * 3 for v in (0, 0, 1, 128, 255)], [SCALED])


def test_a_dark_16_bit_picture_is_left_dark_and_said_so(make):
    pixels, notes = row(make.file(np.array([[0, 4095]], np.uint16), "PNG"))
    assert pixels == [[0] * 3, [16] * 3] and notes == [
        SCALED,
        "It may look dark: its brightest value is 4095 of 65535.",
    ]


def test_12_bit_tiff_is_scaled_by_12_bits(make):
    tags = {256: 2, 257: 1, 258: 12, 259: 1, 262: 1, 273: 8 + 2 + 12 * 9 + 4, 277: 1, 278: 1, 279: 3}
    assert row(make.tiff(tags, b"\xff\xf8\x00")) == ([[255] * 3, [128] * 3], ["Scaled from 12 to 8 bits per channel."])


def test_16_bit_colour_takes_the_high_byte_and_says_so(make):
    values = struct.pack(">6H", 0, 32768, 65535, 257, 256, 255)
    assert row(make.png(2, 1, 16, 2, b"\0" + values)) == ([[0, 128, 255], [1, 1, 0]], [SCALED])


@pytest.mark.parametrize(
    ("depth", "colour", "values", "expected"),
    [
        (8, 4, bytes([0, 0, 100, 255]), [[255] * 3, [100] * 3]),
        (8, 6, bytes([255, 0, 0, 128, 10, 20, 30, 255]), [[255, 127, 127], [10, 20, 30]]),
        (16, 4, struct.pack(">4H", 0, 0, 25700, 65535), [[255] * 3, [100] * 3]),
        (16, 6, struct.pack(">8H", 0, 0, 0, 0, 65535, 0, 0, 65535), [[255] * 3, [255, 0, 0]]),
    ],
)
def test_alpha_is_laid_on_white(make, depth, colour, values, expected):
    pixels, notes = row(make.png(2, 1, depth, colour, b"\0" + values))
    assert pixels == expected and WHITE in notes


def test_an_opaque_alpha_channel_is_not_worth_a_note(make):
    assert row(make.png(1, 1, 8, 6, b"\0" + bytes([9, 8, 7, 255]))) == ([[9, 8, 7]], [])


def test_a_transparent_palette_colour_is_laid_on_white(make):
    palette = make.chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255])) + make.chunk(b"tRNS", bytes([0, 128]))
    pixels, notes = row(make.png(3, 1, 8, 3, b"\0\x00\x01\x02", palette))
    assert pixels == [[255] * 3, [127, 255, 127], [0, 0, 255]] and notes == [WHITE]


@pytest.mark.parametrize(("depth", "grey"), [(8, bytes([0, 7, 255])), (16, struct.pack(">3H", 0, 7, 65535))])
def test_a_transparent_grey_level_is_laid_on_white(make, depth, grey):
    clear = make.chunk(b"tRNS", struct.pack(">H", 7))
    pixels, notes = row(make.png(3, 1, depth, 0, b"\0" + grey, clear))
    assert pixels == [[0] * 3, [255] * 3, [255] * 3] and WHITE in notes


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_cmyk_has_the_colours_that_a_printer_would_give(make, format):
    pixels, notes = row(make.file(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), format))
    assert np.allclose(pixels, [255, 0, 0], atol=2)
    assert notes == ["Converted from CMYK without a colour profile; colours are approximate."]


def test_a_cmyk_jpeg_is_stored_inverted_as_adobe_does(make):
    blob = make.file(Image.new("CMYK", (8, 8), (0, 0, 0, 0)), "JPEG")
    assert b"Adobe" in blob
    assert np.allclose(row(blob)[0], 255, atol=2)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "TIFF", "WEBP"])
def test_every_exif_orientation_is_turned_upright(make, format, orientation):
    upright = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    lossless = {"lossless": True} if format == "WEBP" else {}
    picture = images.decode(make.file(np.ascontiguousarray(stored), format, exif=exif, **lossless), **LIMITS)
    assert np.array_equal(picture.pixels, upright)
    assert picture.notes == (["Turned upright as its EXIF orientation says."] if orientation > 1 else [])


def test_a_broken_exif_block_does_not_lose_the_picture(make):
    pixels, _ = row(make.file(Image.new("RGB", (8, 8), "white"), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff"))
    assert pixels[0] == [255] * 3


@pytest.mark.parametrize("format", ["GIF", "PNG", "TIFF", "WEBP"])
def test_of_an_animation_the_first_picture_is_used_and_said_so(make, format):
    red, blue = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
    pixels, notes = row(make.file(red, format, save_all=True, append_images=[blue]))
    assert np.allclose(pixels, [255, 0, 0], atol=1) and notes == ["The file holds several pictures; the first is used."]


def test_a_telephone_jpeg_with_a_second_picture_in_it_is_read(make):
    photo = Image.new("RGB", (16, 16), "red")
    pixels, notes = row(make.file(photo, "MPO", save_all=True, append_images=[Image.new("RGB", (16, 16), "blue")]))
    assert np.allclose(pixels, [255, 0, 0], atol=3) and notes == ["The file holds several pictures; the first is used."]


def profile(description: str, *, swap: bool) -> bytes:
    """The sRGB profile under another name, with red and blue exchanged where `swap`."""
    blob = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    blob = blob.replace("sRGB".encode("utf-16-be"), description[:4].encode("utf-16-be"))
    return blob.replace(b"rXYZ", b"-XYZ").replace(b"bXYZ", b"rXYZ").replace(b"-XYZ", b"bXYZ") if swap else blob


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_an_embedded_profile_is_converted_to_srgb(make, mode):
    photo = Image.new(mode, (2, 2), (200, 100, 50) if mode == "RGB" else (200, 100, 50, 255))
    pixels, notes = row(make.file(photo, "PNG", icc_profile=profile("swap", swap=True)))
    assert np.allclose(pixels, [50, 100, 200], atol=2)
    assert len(notes) == 1 and notes[0].startswith("Colours converted to sRGB from “swap")


def test_an_srgb_profile_changes_nothing(make):
    photo = Image.new("RGB", (1, 1), (200, 100, 50))
    assert row(make.file(photo, "PNG", icc_profile=profile("sRGB", swap=False))) == ([[200, 100, 50]], [])


@pytest.mark.parametrize("blob", [b"junk" * 10, ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()])
def test_a_profile_that_does_not_fit_is_ignored_with_a_note(make, blob):
    photo = Image.new("RGB", (1, 1), (200, 100, 50))
    ignored = ["Its colour profile cannot be used and is ignored."]
    assert row(make.file(photo, "PNG", icc_profile=blob)) == ([[200, 100, 50]], ignored)


def test_nothing_of_the_file_but_its_pixels_is_kept(make):
    exif = Image.Exif()
    exif[0x010F] = "Secret camera"
    stored = images.encode(images.decode(make.file(Image.new("RGB", (4, 4)), "PNG", exif=exif), **LIMITS).pixels)
    assert b"Secret" not in stored and Image.open(io.BytesIO(stored)).info == {}
