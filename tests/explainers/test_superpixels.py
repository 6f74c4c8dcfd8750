from __future__ import annotations

import numpy as np
import pytest

from fanlight.errors import InvalidField
from fanlight.explainers import superpixels
from support.explaining import finish, photo


def flooded(mask, start):
    """The part of a mask that is connected to one pixel, by walking."""
    seen, stack = set(), [start]
    while stack:
        row, column = stack.pop()
        inside = 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1]
        if not inside or (row, column) in seen or not mask[row, column]:
            continue
        seen.add((row, column))
        stack += [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return seen


@pytest.mark.parametrize(
    ("shape", "regions", "compactness"), [((48, 48), 16, 10), ((33, 70), 40, 1), ((8, 8), 64, 10), ((40, 40), 2, 100)]
)
def test_regions_are_connected_numbered_without_gaps_and_as_many_as_asked(shape, regions, compactness):
    image = np.asarray(photo(2, 96)[: shape[0], : shape[1]])
    label = finish(superpixels.cut(image, regions, compactness))
    assert label.shape == shape and label.dtype == np.int32
    numbers = np.unique(label)
    assert numbers[0] == 0 and numbers[-1] == len(numbers) - 1
    assert regions // 2 <= len(numbers) <= regions
    for n in numbers:
        mask = label == n
        assert len(flooded(mask, tuple(np.argwhere(mask)[0]))) == mask.sum(), f"region {n} is in pieces"


def test_the_border_of_two_colours_is_a_border_of_regions():
    image = np.zeros((60, 60, 3), dtype=np.uint8)
    image[:, 23:] = (200, 40, 40)  # not where the grid cuts
    image[37:, 23:] = (40, 40, 200)
    label = finish(superpixels.cut(image, 9, 5))
    for n in np.unique(label):
        assert len(np.unique(image[label == n], axis=0)) == 1, "no region crosses a border"


def test_a_plain_picture_is_cut_into_its_grid():
    label = finish(superpixels.cut(np.full((40, 60, 3), 90, dtype=np.uint8), 6, 10))
    expected = (np.arange(40) // 20)[:, None] * 3 + (np.arange(60) // 20)[None]
    np.testing.assert_array_equal(label, expected)


def test_as_many_regions_as_pixels_leaves_each_pixel_alone():
    image = np.asarray(photo(1, 8))
    label = finish(superpixels.cut(image, 64, 1000))
    np.testing.assert_array_equal(label, np.arange(64).reshape(8, 8))


def test_a_large_picture_is_cut_on_a_thinned_one():
    image = np.asarray(photo(1, 64)).repeat(17, 0).repeat(17, 1)  # 1088 pixels
    label = finish(superpixels.cut(image, 30, 10))
    assert label.shape == (1088, 1088) and 15 <= label.max() + 1 <= 30


def test_stray_parts_join_what_they_touch():
    label = np.array([[0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=np.int32)
    np.testing.assert_array_equal(superpixels.connected(label), [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]])


def test_more_regions_than_pixels_are_refused():
    with pytest.raises(InvalidField, match="65 superpixels are more than the 64 pixels") as refused:
        superpixels.check(65, (8, 8))
    assert refused.value.allowed == {"maximum": 64}


def test_lab_is_that_of_known_colours():
    colours = np.array([[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 0, 255], [119, 119, 119]], dtype=np.uint8)
    # published values for sRGB and D65
    known = [[0, 0, 0], [100, 0, 0], [53.24, 80.09, 67.20], [32.30, 79.19, -107.86], [50.03, 0, 0]]
    np.testing.assert_allclose(superpixels.lab(colours), known, atol=0.15)
