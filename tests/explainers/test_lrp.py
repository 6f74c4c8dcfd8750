from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fanlight.adapters.base import missing
from fanlight.errors import InvalidField
from fanlight.explainers.attribution.lrp import LRP
from fanlight.explainers.base import Target
from fanlight_models.efficientnet_lite import Conv, InvertedBottleneck
from support.explaining import classifier, conv_net, explained, item
from support.tiny_vit import tiny_vit

EPSILON = 1e-6


def stable(z):
    return z + torch.where(z >= 0, EPSILON, -EPSILON)


@pytest.mark.parametrize("target", [Target(1), Target(2, 0)], ids=str)
def test_epsilon_equals_the_rule_by_hand_in_float64(target):
    """R_in = x W'(R_out / z) through each layer; means share in proportion, rectifiers pass on."""
    model = conv_net()
    one = item(model, target=target)
    (found,) = explained(LRP, model, one, rules="epsilon")
    net = copy.deepcopy(model.net).double()
    x = one.x[None].double()
    with torch.no_grad():
        z_1 = net[0](x)
        a_1 = z_1.relu()
        z_2 = net[2](a_1)
        a_2 = z_2.relu()
        pooled = a_2.mean((2, 3))
        logits = net[6](pooled)
        start = torch.zeros(1, 5, dtype=torch.float64)
        start[0, target.index] = logits[0, target.index]
        if target.minus is not None:
            start[0, target.minus] = -logits[0, target.minus]
        r_pooled = pooled * ((start / stable(logits)) @ net[6].weight)
        r_2 = a_2 / 64 * (r_pooled / stable(pooled))[:, :, None, None]
        r_1 = a_1 * F.conv_transpose2d(r_2 / stable(z_2), net[2].weight, stride=2, padding=1, output_padding=1)
        r = x * F.conv_transpose2d(r_1 / stable(z_1), net[0].weight, stride=2, padding=2, output_padding=1)
    twin = r[0].sum(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-2, atol=1e-3 * np.abs(twin).max())
    assert found.meta["f_x"] == pytest.approx(float(start.sum()), rel=1e-4)


def without_biases(net):
    for module in net.modules():
        if getattr(module, "bias", None) is not None:
            nn.init.zeros_(module.bias)
    return net


class Residual(nn.Module):
    """Two of the default model's own blocks, the second with a sum of branches, ReLU6 as functions."""

    def __init__(self):
        super().__init__()
        self.stem = Conv(3, 8, 3, 2)
        self.one, self.two = InvertedBottleneck(3, 1, 2, 8, 8), InvertedBottleneck(5, 2, 3, 8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.two(self.one(F.relu6(self.stem(x)))).mean((2, 3)))


def build(kind):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Residual() if kind == "residual" else conv_net().net
        return classifier(without_biases(net), 4 if kind == "residual" else 5)


@pytest.mark.parametrize("kind", ["chain", "residual"])
@pytest.mark.parametrize("rules", ["epsilon", "epsilon-gamma-box"])
def test_without_biases_all_of_the_answer_arrives(kind, rules):
    model = build(kind)
    for target in (Target(0), Target(2, 1)):
        (found,) = explained(LRP, model, item(model, target=target), rules=rules)
        assert found.meta["conservation"] == pytest.approx(1, abs=2e-2)
        assert found.meta["total"] == pytest.approx(found.arrays["value"].sum(), rel=1e-3, abs=1e-4)


def test_with_biases_it_says_how_much_arrived():
    model = conv_net()
    (found,) = explained(LRP, model, item(model))
    total, f_x = found.arrays["value"].astype(float).sum(), found.meta["f_x"]
    assert found.meta["conservation"] == pytest.approx(total / f_x, rel=1e-3)
    assert found.meta["conservation"] != pytest.approx(1, abs=0.02)


def test_gamma_favours_what_speaks_for_the_class():
    model = build("chain")
    one = item(model)
    negative = []
    for gamma in (0.0, 0.25, 10.0):
        value = explained(LRP, model, one, gamma=gamma)[0].arrays["value"]
        negative.append(-value[value < 0].sum() / np.abs(value).sum())
    assert negative[0] > negative[1] > negative[2]


def test_a_transformer_is_refused_with_the_reason_and_similarity_too():
    reason = missing(LRP.needs, tiny_vit().capabilities)
    assert reason is not None and "each of which has a rule" in reason
    model = conv_net()
    with pytest.raises(InvalidField, match="not the similarity"):
        explained(LRP, model, item(model, target=Target(0, similar_to="a" * 64)))
