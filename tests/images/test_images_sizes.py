"""A refusal by size names two different numbers, in the unit that settings are given in."""

from __future__ import annotations

import re

import pytest
from PIL import Image

from fanlight import images
from fanlight.errors import TooLarge


def said(blob: bytes, max_bytes: int = 64 << 20, max_pixels: int = 40_000_000) -> str:
    with pytest.raises(TooLarge) as caught:
        images.decode(blob, max_bytes=max_bytes, max_pixels=max_pixels)
    return caught.value.message


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (1, "The file has 1,048,577 bytes; at most 1,048,576 bytes are allowed."),
        (50, "The file has 1,048,626 bytes; at most 1,048,576 bytes are allowed."),
        (1 << 19, "The file has 1.5 MiB; at most 1 MiB are allowed."),
        (9 << 20, "The file has 10 MiB; at most 1 MiB are allowed."),
    ],
)
def test_a_file_over_the_limit_has_another_size_than_the_limit(over, words):
    assert said(bytes((1 << 20) + over), max_bytes=1 << 20) == words


@pytest.mark.parametrize("size", [(100, 101), (1000, 11), (10_001, 1), (200, 200)])
def test_a_picture_over_the_limit_has_another_size_than_the_limit(make, size):
    given, allowed = said(make.file(Image.new("1", size), "PNG"), max_pixels=10_000).split(";")
    number = re.search(r"= ([\d.,]+ \w+)", given)
    assert number and number[1] not in allowed and "0.01 megapixels" in allowed


def test_a_picture_one_pixel_over_says_its_pixels(make):
    blob = make.file(Image.new("1", (10_001, 1)), "PNG")
    assert said(blob, max_pixels=10_000).startswith("The picture has 10001 x 1 = 10,001 pixels;")
