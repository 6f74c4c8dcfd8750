from __future__ import annotations

import numpy as np
import pytest

from fanlight.explainers.attribution.occlusion import Occlusion, corners
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, item, linear, naive


@pytest.mark.parametrize(("window", "stride"), [(8, 8), (12, 5), (7, 4)])
@pytest.mark.parametrize("target", [Target(0), Target(3, 1)], ids=str)
def test_it_equals_a_loop_over_windows_in_float64(target, window, stride):
    model = conv_net()
    one = item(model, target=target)
    (found,) = explained(Occlusion, model, one, window=window, stride=stride, baseline="black")
    f, x, black = naive(model, target), one.x.double(), model.colour((0, 0, 0)).double()
    total, cover = np.zeros((32, 32)), np.zeros((32, 32))
    starts = [*range(0, 32 - window, stride), 32 - window]
    for row in starts:
        for column in starts:
            hidden = x.clone()
            hidden[:, row : row + window, column : column + window] = black
            total[row : row + window, column : column + window] += float(f(x) - f(hidden))
            cover[row : row + window, column : column + window] += 1
    twin = total / cover
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-4 * np.abs(twin).max())


def test_of_an_additive_model_each_window_is_the_sum_of_what_it_hides():
    model = linear()
    one = item(model, target=Target(1))
    (found,) = explained(Occlusion, model, one, window=8, stride=8)
    worth = (model.net.weight[1] * one.x).sum(0).numpy()  # grey is 0 in this model's space
    blocks = worth.reshape(4, 8, 4, 8).sum((1, 3)).repeat(8, 0).repeat(8, 1)
    np.testing.assert_allclose(found.arrays["value"], blocks, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("size", "window", "stride"), [((32, 32), 32, 16), ((32, 48), 10, 7), ((9, 224), 32, 16), ((33, 33), 8, 30)]
)
def test_windows_cover_every_pixel_and_stay_inside(size, window, stride):
    cover = np.zeros(size, dtype=int)
    places = corners(size, window, stride)
    for row, column in places:
        assert row >= 0 and column >= 0
        cover[row : row + window, column : column + window] += 1
    assert cover.min() > 0
    assert len(set(places)) == len(places)


def test_another_target_of_the_same_picture_asks_the_model_nothing():
    model, context = conv_net(), Context()
    (first,) = explained(Occlusion, model, item(model, target=Target(0)), context, window=8, stride=8)
    asked = model.passes
    (second,) = explained(Occlusion, model, item(model, target=Target(3)), context, window=8, stride=8)
    (both,) = explained(Occlusion, model, item(model, target=Target(0, 3)), context, window=8, stride=8)
    assert model.passes == asked
    difference = first.arrays["value"] - second.arrays["value"]
    np.testing.assert_allclose(both.arrays["value"], difference, rtol=0, atol=1e-5)
    explained(Occlusion, model, item(model, target=Target(3)), context, window=8, stride=8, baseline="white")
    assert model.passes > asked
