"""Agreement and difference of maps against answers that are known."""

from __future__ import annotations

import numpy as np
import pytest
from drawing_samples import image_map, regions

from fanlight.comparison import GRID, agreement, difference, rank_correlation, ranks, resampled

RNG = np.random.default_rng(0)
SMOOTH = np.add.outer(np.arange(56.0), 3 * np.arange(56.0)) - 112


def test_ranks_share_the_mean_among_equals() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_rank_correlation_of_known_pairs() -> None:
    # With d = (0, 1, 1, 0): 1 - 6 * 2 / (4 * 15) = 0.8.
    assert rank_correlation(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4])) == pytest.approx(0.8)
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([1.0, 8, 27])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([0.0, -1, -5])) == pytest.approx(-1)
    assert rank_correlation(np.array([1.0, 2, 3]), np.zeros(3)) is None


def test_means_weigh_pixels_by_the_area_that_they_share() -> None:
    row = np.array([[1.0, 2.0, 6.0]])
    assert resampled(row, (0, 0, 1, 1), (1, 2))[0] == pytest.approx([(1 + 0.5 * 2) / 1.5, (0.5 * 2 + 6) / 1.5])
    assert resampled(row, (1 / 3, 0, 1, 1), (1, 2))[0] == pytest.approx([2, 6])
    assert resampled(SMOOTH, (0, 0, 1, 1), (7, 7)).mean() == pytest.approx(SMOOTH.mean())


def test_agreement_is_one_with_a_coarser_copy_and_minus_one_with_the_opposite() -> None:
    coarse = resampled(SMOOTH, (0, 0, 1, 1), (GRID, GRID))
    maps = [
        image_map(SMOOTH, signed=True),
        image_map(7 * coarse, signed=True, unit="nats", box=[0, 0, 56, 56]),
        image_map(-SMOOTH, signed=True),
    ]
    found = np.array(agreement(maps, same_picture=True), float)
    assert np.diag(found) == pytest.approx([1, 1, 1])
    assert found[0, 1] == pytest.approx(1) and found[0, 2] == pytest.approx(-1)
    assert found == pytest.approx(found.T)


def test_without_a_sign_magnitudes_are_compared() -> None:
    signed, plain = image_map(-SMOOTH - 500, signed=True), image_map(SMOOTH + 500, signed=False)
    assert agreement([signed, plain], same_picture=True)[0][1] == pytest.approx(1)


def test_of_one_picture_the_same_part_is_compared() -> None:
    whole = image_map(SMOOTH, signed=True)
    crop = image_map(SMOOTH[14:42, 14:42], signed=True, box=[14, 14, 42, 42])
    assert agreement([whole, crop], same_picture=True)[0][1] == pytest.approx(1)
    made = difference(whole, crop, same_picture=True)
    assert made.meta["box"] == [14, 14, 42, 42]
    apart = image_map(SMOOTH, signed=True, box=[100, 100, 156, 156])
    assert agreement([whole, apart], same_picture=True)[0][1] is None
    with pytest.raises(ValueError, match="no part"):
        difference(whole, apart, same_picture=True)
    assert agreement([whole, apart], same_picture=False)[0][1] == pytest.approx(1)


def test_difference_is_first_minus_second_in_their_unit() -> None:
    a, b = RNG.normal(size=(12, 12)), RNG.normal(size=(12, 12))
    made = difference(image_map(a, signed=True), image_map(b, signed=True), same_picture=True)
    assert made.meta["unit"] == "logit" and made.meta["signed"]
    assert made.arrays["value"] == pytest.approx((a - b).astype(np.float32), abs=1e-6)


def test_difference_of_other_units_is_of_shares_of_each_scale() -> None:
    a = np.full((4, 4), 2.0)
    a[0, 0] = 1.0
    made = difference(
        image_map(a, signed=True), image_map(np.full((4, 4), 10.0), signed=True, unit="nats"), same_picture=True
    )
    assert "own scale" in made.meta["unit"]
    assert made.arrays["value"][0, 0] == pytest.approx(-0.5) and made.arrays["value"][3, 3] == pytest.approx(0)


def test_regions_are_compared_by_the_value_of_their_region() -> None:
    label = np.repeat(np.repeat([[0, 1], [2, 3]], 14, 0), 14, 1)
    made = difference(regions(label, [1, 2, 3, 4]), regions(label, [1, 0, 3, 5]), same_picture=True)
    assert made.arrays["value"][0, 20] == 2 and made.arrays["value"][20, 20] == -1 and made.arrays["value"][0, 0] == 0
