from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient as CaptumInputXGradient
from torch import nn

from fanlight.explainers.attribution.input_x_gradient import InputXGradient
from fanlight.explainers.base import Target
from support.explaining import conv_net, explained, item, linear, naive


@pytest.mark.parametrize("target", [Target(1), Target(2, 0)], ids=str)
def test_it_equals_central_differences_in_float64(target):
    model = conv_net(activation=nn.Tanh)
    one = item(model, target=target)
    (found,) = explained(InputXGradient, model, one)
    f, x, h = naive(model, target), one.x.double(), 1e-5
    for row, column in [(0, 0), (5, 17), (31, 31), (16, 3)]:
        total = 0.0
        for channel in range(3):
            step = torch.zeros_like(x)
            step[channel, row, column] = h
            total += float(x[channel, row, column]) * float(f(x + step) - f(x - step)) / (2 * h)
        assert found.arrays["value"][row, column] == pytest.approx(total, rel=1e-3, abs=1e-7)


def test_of_an_additive_model_the_values_add_up_to_the_answer():
    model = linear()
    one = item(model, target=Target(0, 2))
    (found,) = explained(InputXGradient, model, one)
    weight = model.net.weight[0] - model.net.weight[2]
    np.testing.assert_allclose(found.arrays["value"], (weight * one.x).sum(0).numpy(), rtol=1e-4, atol=1e-6)
    assert found.meta["total"] == pytest.approx(found.meta["f_x"], rel=1e-4)


def test_zero_can_be_another_colour_and_a_pixel_of_that_colour_gets_nothing():
    model = linear()
    one = item(model, target=Target(1))
    white = model.colour((255, 255, 255))
    one.x[:, 4:8, 4:8] = white
    (found,) = explained(InputXGradient, model, one, zero="white")
    np.testing.assert_allclose(
        found.arrays["value"], (model.net.weight[1] * (one.x - white)).sum(0).numpy(), rtol=1e-4, atol=1e-6
    )
    assert not found.arrays["value"][4:8, 4:8].any()


def test_it_agrees_with_captum():
    model = conv_net(3)
    one = item(model, target=Target(4))
    (found,) = explained(InputXGradient, model, one)
    theirs = CaptumInputXGradient(model.net).attribute(one.x[None].clone().requires_grad_(), target=4)[0].sum(0)
    np.testing.assert_allclose(found.arrays["value"], theirs.detach().numpy(), rtol=1e-3, atol=1e-6)
