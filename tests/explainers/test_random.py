from __future__ import annotations

import numpy as np

from fanlight.explainers.attribution.random import Random
from support.explaining import conv_net, explained, item


def test_squares_have_the_values_that_numpy_draws_for_the_seed():
    model = conv_net()
    (found,) = explained(Random, model, item(model, seed=7), patch=8)
    drawn = np.random.default_rng(7).random(16, dtype=np.float32)
    for row in range(32):
        for column in range(32):
            assert found.arrays["value"][row, column] == drawn[4 * (row // 8) + column // 8]


def test_neither_picture_nor_target_plays_a_part_and_the_model_is_not_asked():
    model = conv_net()
    (one,), (other,) = explained(Random, model, [item(model, 0, seed=3), item(model, 1, seed=3)])
    np.testing.assert_array_equal(one.arrays["value"], other.arrays["value"])
    assert model.passes == 0


def test_values_are_uniform_over_seeds():
    model = conv_net()
    items = [item(model, seed=s) for s in range(200)]
    values = np.array([a.arrays["value"][::8, ::8] for (a,) in explained(Random, model, items, patch=8)]).ravel()
    share, _ = np.histogram(values, 10, (0, 1))
    assert np.abs(share / len(values) - 0.1).max() < 0.025  # 4.7 standard deviations of 3,200 draws
