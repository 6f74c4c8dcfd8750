from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import Saliency as CaptumSaliency
from torch import nn

from fanlight.explainers.attribution.saliency import Saliency
from fanlight.explainers.base import Target
from support.explaining import conv_net, explained, item, linear, naive


@pytest.mark.parametrize("target", [Target(1), Target(2, 0)], ids=str)
def test_it_equals_central_differences_in_float64(target):
    model = conv_net(activation=nn.Tanh)
    one = item(model, target=target)
    (found,) = explained(Saliency, model, one)
    f = naive(model, target)
    x, h = one.x.double(), 1e-5
    for row, column in [(0, 0), (5, 17), (31, 31), (16, 3)]:
        slopes = []
        for channel in range(3):
            step = torch.zeros_like(x)
            step[channel, row, column] = h
            slopes.append(abs(float(f(x + step) - f(x - step)) / (2 * h)))
        assert found.arrays["value"][row, column] == pytest.approx(max(slopes), rel=1e-3)


def test_of_an_additive_model_it_is_the_largest_weight():
    model = linear()
    (found,) = explained(Saliency, model, item(model, target=Target(2)))
    np.testing.assert_allclose(found.arrays["value"], model.net.weight[2].abs().amax(0).numpy(), rtol=1e-5)
    (summed,) = explained(Saliency, model, item(model, target=Target(2, 1)), channels="sum")
    difference = model.net.weight[2] - model.net.weight[1]
    np.testing.assert_allclose(summed.arrays["value"], difference.abs().sum(0).numpy(), rtol=1e-5)


def test_it_agrees_with_captum():
    model = conv_net(3)
    one = item(model, target=Target(4))
    (found,) = explained(Saliency, model, one)
    theirs = CaptumSaliency(model.net).attribute(one.x[None].clone().requires_grad_(), target=4, abs=True)[0].amax(0)
    np.testing.assert_allclose(found.arrays["value"], theirs.numpy(), rtol=1e-4, atol=1e-7)


def test_it_is_unsigned_and_says_what_it_is_of():
    model = conv_net()
    (found,) = explained(Saliency, model, item(model, target=Target(1, 3)))
    assert found.arrays["value"].min() >= 0
    assert found.meta["signed"] is False and found.meta["target"] == {"minus": [1, 3]}
