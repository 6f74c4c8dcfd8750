from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fanlight.explainers.attribution.grad_cam_plus_plus import GradCAMPlusPlus
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item


@pytest.mark.parametrize("target", [Target(0), Target(2, 1)], ids=str)
def test_it_equals_the_equations_cell_by_cell_in_float64(target):
    model = conv_net(4)
    one = item(model, target=target)
    (found,) = explained(GradCAMPlusPlus, model, one)
    net = copy.deepcopy(model.net).double()
    with torch.no_grad():
        a = net[:4](one.x[None].double())[0].numpy()  # (12, 8, 8)
        weight = net[6].weight.numpy()
    slope = weight[target.index] - (0 if target.minus is None else weight[target.minus])
    cam = np.zeros((8, 8))
    for k in range(12):
        g = slope[k] / 64  # the same in every cell: a mean follows
        alpha = g**2 / (2 * g**2 + a[k].sum() * g**3)
        cam += sum(alpha * max(g, 0) for _ in range(64)) * a[k]
    twin = F.interpolate(torch.from_numpy(np.maximum(cam, 0))[None, None], (32, 32), mode="bilinear")[0, 0].numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-4, atol=1e-6 * np.abs(twin).max())
    assert found.meta["grid"] == [8, 8] and found.meta["signed"] is False


class TwoSpots(torch.nn.Module):
    """Two features, each the brightness of one colour; class 0 adds both. Red covers much, green little."""

    def __init__(self) -> None:
        super().__init__()
        self.grid = torch.nn.Identity()

    def forward(self, x):
        grid = self.grid(x[:, :2].relu())
        # each feature answers with its strongest cells alike, however many there are
        return torch.stack([grid.amax((2, 3)).sum(1), -grid.sum((1, 2, 3))], 1)


def test_a_feature_with_no_slope_counts_nothing():
    model = classifier(TwoSpots(), 2, features_at="grid")
    one = item(model, target=Target(1))
    (found,) = explained(GradCAMPlusPlus, model, one)
    assert not found.arrays["value"].any(), "every feature speaks against class 1"
    (found,) = explained(GradCAMPlusPlus, model, item(model, target=Target(0)))
    x = one.x[:2].relu()
    top = x.amax((1, 2))
    # only the strongest cell of each feature has a slope, 1: alpha = 1 / (2 + sum of the feature)
    weight = 1 / (2 + x.sum((1, 2))) * (top > 0)
    np.testing.assert_allclose(found.arrays["value"], (weight[:, None, None] * x).sum(0).numpy(), rtol=1e-4, atol=1e-6)
