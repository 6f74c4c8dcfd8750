from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fanlight.adapters.base import missing
from fanlight.errors import ComputeFailed, InvalidField, Unavailable
from fanlight.explainers import base, maps
from fanlight.explainers.attribution.deep_lift import DeepLift
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item, linear


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("target", [Target(1), Target(2, 0)], ids=str)
def test_it_equals_the_rules_by_hand_in_float64(target, activation):
    model = conv_net(activation=activation)
    one = item(model, target=target)
    (found,) = explained(DeepLift, model, one, baseline="blur")
    net = copy.deepcopy(model.net).double()
    both = torch.stack([one.x, maps.baseline(model, one, "blur")]).double()
    with torch.no_grad():
        z_1 = net[0](both)
        y_1 = net[1](z_1)
        z_2 = net[2](y_1)
        y_2 = net[3](z_2)

        def chord(y, z):
            gone = (z[0] - z[1]).abs() < 1e-12
            return torch.where(gone, 0, (y[0] - y[1]) / (z[0] - z[1] + gone))

        weight = net[6].weight
        slope = weight[target.index] - (0 if target.minus is None else weight[target.minus])
        back = (slope / 64)[:, None, None] * chord(y_2, z_2)
        back = F.conv_transpose2d(back[None], net[2].weight, stride=2, padding=1, output_padding=1)[0]
        back = F.conv_transpose2d((back * chord(y_1, z_1))[None], net[0].weight, stride=2, padding=2, output_padding=1)
        twin = (back[0] * (both[0] - both[1])).sum(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-4 * np.abs(twin).max())
    assert found.meta["completeness_error"] < 1e-4


def test_of_an_additive_model_it_is_weight_times_distance_from_the_baseline():
    model = linear()
    one = item(model, target=Target(0, 2))
    (found,) = explained(DeepLift, model, one, baseline="black")
    weight = model.net.weight[0] - model.net.weight[2]
    expected = (weight * (one.x - model.colour((0, 0, 0)))).sum(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], expected, rtol=1e-3, atol=1e-4)


def test_two_activations_that_meet_are_refused_before_and_told_after():
    """What the structure does not see is seen by the sum: here the check is passed by, as a third party might."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU6(), nn.Conv2d(8, 8, 3), nn.GELU(), nn.AdaptiveAvgPool2d(1))
        net = nn.Sequential(*net, nn.Flatten(), nn.Linear(8, 4))
    model = classifier(net, 4)
    reason = missing(DeepLift.needs, model.capabilities)
    assert reason is not None and "activations that are modules of their own" in reason
    with pytest.raises(ComputeFailed, match="do not add up"):
        explained(DeepLift, model, item(model))


def test_similarity_is_refused_in_a_sentence():
    model = conv_net()
    one = item(model, target=Target(0, similar_to="a" * 64))
    with pytest.raises(InvalidField, match="not the similarity"):
        explained(DeepLift, model, one)


def test_a_missing_package_is_a_sentence():
    class Elsewhere(DeepLift):
        package = ("no_such_package_at_all", "somewhere")

    assert base.absent(DeepLift) is None
    with pytest.raises(Unavailable, match=r"no_such_package_at_all.*fanlight\[somewhere\]"):
        base.importable(Elsewhere)
