"""Canonical pictures: digests, storage, cutting, edits."""

from __future__ import annotations

import io

import numpy as np
import pytest
import skimage.data
from hypothesis import given, settings, strategies as st
from PIL import Image

from fanlight import images
from fanlight.errors import InvalidField

LIMITS = {"max_bytes": 64 << 20, "max_pixels": 40_000_000}


@given(st.integers(1, 40), st.integers(1, 600), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_what_is_stored_is_read_back_exactly(width, height, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    back = images.load(images.encode(pixels))
    assert np.array_equal(back, pixels) and back.flags.writeable


def test_only_what_encode_made_is_loaded(make):
    with pytest.raises(ValueError, match="RGB"):
        images.load(make.file(Image.new("L", (2, 2)), "PNG"))
    with pytest.raises(OSError, match="cannot identify"):
        images.load(make.file(Image.new("RGB", (2, 2)), "BMP"))


def test_the_same_picture_in_another_file_has_the_same_digest(make):
    photo = skimage.data.chelsea()
    digests = {
        images.canonical_digest(images.decode(make.file(photo, f), **LIMITS).pixels) for f in ("PNG", "BMP", "TIFF")
    }
    assert digests == {images.canonical_digest(photo)}


def test_another_shape_or_pixel_has_another_digest():
    a = np.zeros((2, 3, 3), np.uint8)
    b = a.copy()
    b[1, 2, 2] = 1
    assert len({images.canonical_digest(p) for p in (a, a.transpose(1, 0, 2), a.reshape(1, 6, 3), b)}) == 4


def test_a_digest_does_not_depend_on_memory_layout():
    photo = skimage.data.chelsea()
    assert images.canonical_digest(np.asfortranarray(photo)) == images.canonical_digest(photo)


def test_a_crop_at_its_own_size_is_the_slice():
    photo = skimage.data.chelsea()
    cut = images.crop_resize(photo, (10, 20, 74, 84), (64, 64))
    assert np.array_equal(np.asarray(cut), photo[20:84, 10:74])


def test_a_crop_reaching_outside_by_rounding_is_clipped_and_one_outside_is_an_error():
    photo = skimage.data.chelsea()
    height, width, _ = photo.shape
    assert images.crop_resize(photo, (-1e-9, 0, width + 1e-9, height), (8, 8)).size == (8, 8)
    with pytest.raises(ValueError, match="no part"):
        images.crop_resize(photo, (width, 0, width + 10, 10), (8, 8))


@pytest.mark.parametrize(
    ("shape", "size"), [((300, 451), (256, 170)), ((1, 1), (1, 1)), ((1, 100_000), (256, 1)), ((900, 2), (1, 256))]
)
def test_a_thumbnail_fits_and_is_never_enlarged(shape, size):
    blob = images.thumbnail(np.zeros((*shape, 3), np.uint8), 256)
    assert Image.open(io.BytesIO(blob)).size == size


def test_a_masked_region_is_grey_and_the_rest_untouched():
    photo = skimage.data.chelsea()
    edited = images.apply_edits(photo, [{"mask_region": [10, 20, 30, 25]}])
    assert (edited[20:25, 10:30] == 128).all()
    changed = (edited != photo).any(axis=2)
    changed[20:25, 10:30] = False
    assert not changed.any()
    assert np.array_equal(photo, skimage.data.chelsea())


@pytest.mark.parametrize(
    "region",
    [
        [0, 0, 0, 5], [5, 5, 4, 6], [-1, 0, 5, 5], [0, 0, 9999, 5], [0, 0, 5], [0.5, 0, 5, 5], [False, 0, 1, True],
        "0,0,5,5", None, [0, 0, float("nan"), 5],
    ],
)  # fmt: skip
def test_an_impossible_region_is_refused_in_a_sentence(region):
    with pytest.raises(InvalidField) as caught:
        images.apply_edits(skimage.data.chelsea(), [{"mask_region": region}])
    assert "451 x 300" in caught.value.message and caught.value.allowed == {"x": [0, 451], "y": [0, 300]}


@pytest.mark.parametrize("edit", [{}, {"set_concept": {}}, {"mask_region": [0, 0, 1, 1], "other": 1}])
def test_an_edit_that_pictures_do_not_have_is_refused(edit):
    with pytest.raises(InvalidField) as caught:
        images.apply_edits(skimage.data.chelsea(), [edit])
    assert caught.value.allowed == ["mask_region"]
