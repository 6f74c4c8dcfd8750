from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from fanlight.adapters.loader import load
from fanlight.explainers.attribution.grad_cam import GradCAM
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item


def enlarged(grid, side):
    """Bilinear with pixel centres at half integers, one pixel at a time."""
    h, w = grid.shape
    out = np.zeros((side, side))
    for row in range(side):
        for column in range(side):
            y = min(max((row + 0.5) * h / side - 0.5, 0), h - 1)
            x = min(max((column + 0.5) * w / side - 0.5, 0), w - 1)
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
            top = grid[y0, x0] * (1 - x + x0) + grid[y0, x1] * (x - x0)
            bottom = grid[y1, x0] * (1 - x + x0) + grid[y1, x1] * (x - x0)
            out[row, column] = top * (1 - y + y0) + bottom * (y - y0)
    return out


@pytest.mark.parametrize("evidence", ["for", "both"])
@pytest.mark.parametrize("target", [Target(0), Target(2, 1)], ids=str)
def test_it_equals_the_equations_in_float64(target, evidence):
    model = conv_net(4)
    one = item(model, target=target)
    (found,) = explained(GradCAM, model, one, evidence=evidence)
    net = copy.deepcopy(model.net).double()
    with torch.no_grad():
        activation = net[:4](one.x[None].double())[0].numpy()  # (12, 8, 8)
        weight = net[6].weight.numpy()
    # behind the features are a mean and a linear layer, so the slope is the same in every cell: weight / cells
    slope = weight[target.index] - (0 if target.minus is None else weight[target.minus])
    cam = np.einsum("k,khw->hw", slope / activation[0].size, activation)
    twin = enlarged(np.maximum(cam, 0) if evidence == "for" else cam, 32)
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-4, atol=1e-6 * np.abs(cam).max())
    assert found.meta["signed"] is (evidence == "both") and found.meta["grid"] == [8, 8]


def test_it_lights_up_where_the_evidence_was_planted(root):
    model = load({"file": str(root / "models" / "examples" / "colours.py")})
    picture = np.full((64, 64, 3), 128, dtype=np.uint8)
    picture[8:24, 40:56] = (250, 10, 10)
    probe = item(classifier(nn.Sequential(nn.Flatten(), nn.Linear(64 * 64 * 3, 2)), 2, side=64))
    one = type(probe)(model.prepare(picture), picture, Target(0), torch.zeros(3), 0, model.view(64, 64), "red square")
    (found,) = explained(GradCAM, model, one)
    inside = np.zeros((64, 64), dtype=bool)
    inside[8:24, 40:56] = True
    assert found.arrays["value"][inside].min() > 0
    assert not found.arrays["value"][~inside].any()
    (other,) = explained(
        GradCAM,
        model,
        type(one)(
            *(getattr(one, f) for f in ("x", "image")),
            Target(2),
            *(getattr(one, f) for f in ("logits", "seed", "box", "key")),
        ),
    )
    assert not other.arrays["value"][inside].any(), "nothing in the red square speaks for blue"
