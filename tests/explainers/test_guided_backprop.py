from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from captum.attr import GuidedBackprop as CaptumGuidedBackprop
from torch import nn

from fanlight.explainers.attribution.guided_backprop import GuidedBackprop
from fanlight.explainers.attribution.saliency import Saliency
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item


@pytest.mark.parametrize("target", [Target(1), Target(2, 0)], ids=str)
def test_it_equals_the_rule_by_hand_in_float64(target):
    model = conv_net()
    one = item(model, target=target)
    (found,) = explained(GuidedBackprop, model, one)
    net = copy.deepcopy(model.net).double()
    with torch.no_grad():
        before_1 = net[0](one.x[None].double())
        before_2 = net[2](before_1.relu())
        weight = net[6].weight
        slope = weight[target.index] - (0 if target.minus is None else weight[target.minus])
        back = (slope / 64)[None, :, None, None] * (before_2 > 0) * (slope > 0)[None, :, None, None]
        back = F.conv_transpose2d(back, net[2].weight, stride=2, padding=1, output_padding=1)
        back = back.clamp(min=0) * (before_1 > 0)
        back = F.conv_transpose2d(back, net[0].weight, stride=2, padding=2, output_padding=1)
    twin = back[0].abs().amax(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-5 * twin.max())


def test_it_agrees_with_captum_where_rectifiers_are_modules():
    model = conv_net(3)
    one = item(model, target=Target(4))
    (found,) = explained(GuidedBackprop, model, one, channels="sum")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Captum announces its hooks
        theirs = CaptumGuidedBackprop(model.net).attribute(one.x[None].clone().requires_grad_(), target=4)
    np.testing.assert_allclose(found.arrays["value"], theirs[0].abs().sum(0), rtol=1e-3, atol=1e-6)


class Ways(nn.Module):
    """The same rectifier, clipped at 6 or not, written in different ways."""

    def __init__(self, way):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 3)
        self.way = way

    def forward(self, x):
        y = 5 * self.conv(x)
        return self.head(self.way(y).mean((2, 3)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (F.relu, lambda y: y.clamp(min=0)),
        (torch.relu, nn.ReLU(inplace=True)),
        (F.relu, lambda y: torch.clamp_min(y, 0)),
        (F.relu6, nn.ReLU6()),
        (F.relu6, lambda y: y.clamp(0, 6)),
        (F.relu6, lambda y: F.hardtanh(y, 0.0, 6.0)),
    ],
)
def test_a_rectifier_is_caught_however_it_is_written(one, other):
    maps = []
    for way in (one, other):
        model = classifier(Ways(way), 3)
        maps.append(explained(GuidedBackprop, model, item(model))[0].arrays["value"])
    np.testing.assert_allclose(maps[0], maps[1], rtol=1e-5)
    (plain,) = explained(Saliency, model, item(model))
    assert not np.allclose(maps[0], plain.arrays["value"], rtol=1e-2)


def test_what_is_no_rectifier_is_left_as_it_is():
    model = classifier(Ways(lambda y: torch.tanh(y.clamp(-1, 1))), 3)
    (found,) = explained(GuidedBackprop, model, item(model))
    (plain,) = explained(Saliency, model, item(model))
    np.testing.assert_allclose(found.arrays["value"], plain.arrays["value"], rtol=1e-5)


def ranks(a):
    return np.argsort(np.argsort(a.ravel()))


def test_it_fails_the_randomisation_check_where_the_gradient_passes():
    """A deep network whose last layer is drawn anew: what explains the model must change."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()]
        for _ in range(4):
            layers += [nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()]
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
    model = classifier(net, 5)
    one = item(model, target=Target(1))
    kept = {}
    for explainer in (GuidedBackprop, Saliency):
        (before,) = explained(explainer, model, one)
        scores = []
        for seed in range(8):
            random = copy.deepcopy(net)
            random[-1].weight.data = torch.randn(5, 16, generator=torch.Generator().manual_seed(seed))
            (after,) = explained(explainer, classifier(random, 5), one)
            scores.append(np.corrcoef(ranks(before.arrays["value"]), ranks(after.arrays["value"]))[0, 1])
        kept[explainer] = np.mean(scores)
    assert kept[GuidedBackprop] > 0.8, "the map hardly notices"
    assert kept[Saliency] < kept[GuidedBackprop] - 0.2
