from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fanlight.explainers.attribution.grad_cam import GradCAM
from fanlight.explainers.attribution.layer_cam import LayerCAM
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item


def uneven(seed=0):
    """Behind the features a layer that sees every cell differently."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Conv2d(3, 6, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Tanh(), nn.Linear(96, 4))
        nn.init.normal_(net[4].weight)
    return classifier(net, 4, features_at="1")


@pytest.mark.parametrize("evidence", ["for", "both"])
@pytest.mark.parametrize("target", [Target(0), Target(2, 1)], ids=str)
def test_it_equals_the_equation_in_float64_with_slopes_by_central_differences(target, evidence):
    model = uneven()
    one = item(model, target=target)
    (found,) = explained(LayerCAM, model, one, evidence=evidence)
    net = copy.deepcopy(model.net).double()
    with torch.no_grad():
        grid = net[:2](one.x[None].double())

        def answer(g):
            return float(target.value(net[2:](g))[0])

        cam, h = np.zeros((4, 4)), 1e-5
        for k in range(6):
            for row in range(4):
                for column in range(4):
                    step = torch.zeros_like(grid)
                    step[0, k, row, column] = h
                    slope = (answer(grid + step) - answer(grid - step)) / (2 * h)
                    slope = max(slope, 0) if evidence == "for" else slope
                    cam[row, column] += slope * float(grid[0, k, row, column])
    cam = np.maximum(cam, 0) if evidence == "for" else cam
    twin = F.interpolate(torch.from_numpy(cam)[None, None], (32, 32), mode="bilinear")[0, 0].numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-5 * np.abs(twin).max())
    assert found.meta["signed"] is (evidence == "both") and found.meta["grid"] == [4, 4]


def test_behind_a_mean_both_signs_are_grad_cam():
    model = conv_net()
    one = item(model, target=Target(3))
    (layer,) = explained(LayerCAM, model, one, evidence="both")
    (plain,) = explained(GradCAM, model, one, evidence="both")
    np.testing.assert_allclose(layer.arrays["value"], plain.arrays["value"], rtol=1e-3, atol=1e-5)
