from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients as CaptumIntegratedGradients
from torch import Tensor, nn

from fanlight.explainers.attribution.integrated_gradients import IntegratedGradients
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item, linear, naive


@pytest.mark.parametrize("target", [Target(1), Target(2, 0)], ids=str)
def test_it_equals_a_riemann_sum_in_float64(target):
    model = conv_net(activation=nn.Tanh)
    one = item(model, target=target)
    (found,) = explained(IntegratedGradients, model, one, steps=32, tolerance=0)
    f, x, b, n = naive(model, target), one.x.double(), model.colour((127.5,) * 3).double(), 80
    total = torch.zeros_like(x)
    for k in range(n):
        at = (b + (k + 0.5) / n * (x - b)).requires_grad_()
        total += torch.autograd.grad(f(at), at)[0]
    twin = ((x - b) * total / n).sum(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-5 * np.abs(twin).max())


def test_of_an_additive_model_it_is_weight_times_distance_from_the_baseline():
    model = linear()
    one = item(model, target=Target(0, 2))
    (found,) = explained(IntegratedGradients, model, one, steps=8, baseline="black")
    weight = model.net.weight[0] - model.net.weight[2]
    expected = (weight * (one.x - model.colour((0, 0, 0)))).sum(0)
    np.testing.assert_allclose(found.arrays["value"], expected.numpy(), rtol=1e-4, atol=1e-5)
    assert found.meta["completeness_error"] < 1e-4


def test_it_agrees_with_captum():
    model = conv_net(2)
    one = item(model, target=Target(3))
    (found,) = explained(IntegratedGradients, model, one, steps=20, tolerance=0)
    black = torch.zeros_like(one.x[None])  # mid grey is 0 in this model's space
    theirs = CaptumIntegratedGradients(model.net).attribute(
        one.x[None], black, target=3, n_steps=20, method="gausslegendre"
    )
    theirs = theirs[0].sum(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], theirs, rtol=1e-3, atol=1e-5 * np.abs(theirs).max())


def test_the_values_add_up_and_the_error_says_how_nearly():
    model = conv_net()
    one = item(model)
    (found,) = explained(IntegratedGradients, model, one, steps=64, tolerance=0.01)
    f_x, f_b = found.meta["f_x"], found.meta["f_baseline"]
    f = naive(model, one.target)
    assert f_x == pytest.approx(float(f(one.x)), rel=1e-5)
    assert f_b == pytest.approx(float(f(model.colour((127.5,) * 3).expand_as(one.x))), rel=1e-5)
    missed = abs(found.arrays["value"].astype(float).sum() - (f_x - f_b)) / abs(f_x - f_b)
    assert found.meta["completeness_error"] == pytest.approx(missed, abs=1e-5)
    assert found.meta["completeness_error"] <= 0.01


class Steep(nn.Module):
    """A threshold on the mean: all of the gain is in a sliver of the way, so that few nodes miss it."""

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((1, 2, 3))
        return torch.stack([torch.sigmoid(400 * (mean - 0.05)), -mean], 1)


def test_it_doubles_its_steps_until_the_sum_is_near_enough():
    smooth, steep = linear(), classifier(Steep(), 2)
    assert explained(IntegratedGradients, smooth, item(smooth))[0].meta["steps"] == 8
    one = item(steep, target=Target(0))
    passes = {}
    for tolerance in (0.2, 0.001):
        steep.passes = 0
        (found,) = explained(IntegratedGradients, steep, one, steps=512, tolerance=tolerance, baseline="black")
        assert found.meta["completeness_error"] <= tolerance
        passes[tolerance] = steep.passes
    assert passes[0.001] > passes[0.2]


def test_it_stops_at_the_most_steps_and_admits_the_error():
    steep = classifier(Steep(), 2)
    (found,) = explained(
        IntegratedGradients, steep, item(steep, target=Target(0)), steps=10, tolerance=0.001, baseline="black"
    )
    assert found.meta["steps"] == 10
    assert found.meta["completeness_error"] > 0.001


def test_where_picture_and_baseline_are_equal_there_is_no_relative_error():
    model = classifier(Steep(), 2)
    one = item(model, target=Target(0, 0))
    (found,) = explained(IntegratedGradients, model, one, steps=8)
    assert found.check().meta["completeness_error"] is None
    assert not found.arrays["value"].any()
