"""A network rewritten for rules of relevance answers as it did, and is itself not touched."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fanlight.adapters import canonical
from fanlight_models.efficientnet_lite import EfficientNetLite0
from support.explaining import conv_net
from support.tiny_vit import tiny_vit


class Wired(nn.Module):
    """Batch normalisation, a sum of branches, a rectifier used twice and functions in place of modules."""

    def __init__(self, way="plain"):
        super().__init__()
        self.way = way
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.second, self.act, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Linear(8, 4)
        nn.init.normal_(self.norm.running_mean)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)
        nn.init.normal_(self.norm.weight)

    def forward(self, x):
        y = self.act(self.norm(self.first(x)))
        if self.way == "gate":
            y = y * self.second(y)
        if self.way == "branch on data" and y.sum() > 0:
            y = -y
        if self.way == "bare norm":
            y = self.norm(y)
        y = y + self.act(self.second(y))
        y += F.relu6(y)
        return self.head(F.adaptive_avg_pool2d(F.max_pool2d(y, 2), 1).flatten(1))


def made(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().eval().requires_grad_(False)


@pytest.mark.parametrize("build", [Wired, lambda: EfficientNetLite0(10)])
def test_it_answers_as_the_network_and_leaves_it_alone(build):
    net = made(build)
    before = copy.deepcopy(net.state_dict())
    other = canonical.rewritten(net, (32, 32))
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(other(x), net(x), rtol=1e-4, atol=1e-5)
    assert not any(
        isinstance(m, nn.BatchNorm2d)
        for m in [other.get_submodule(n.target) for n in other.graph.nodes if n.op == "call_module"]
    )
    for key, value in net.state_dict().items():
        assert torch.equal(value, before[key])
    called = [n.target for n in other.graph.nodes if n.op == "call_module"]
    assert len(called) == len(set(called)), "each module is called once"
    assert any(isinstance(other.get_submodule(n), canonical.Add) for n in called)
    shared = {id(p) for p in net.parameters()}
    assert any(id(p) in shared for p in other.parameters()), "weights are not copied"


@pytest.mark.parametrize("way", ["gate", "branch on data", "bare norm"])
def test_what_has_no_rule_is_not_suitable(way):
    assert not canonical.suitable(made(lambda: Wired(way)), (32, 32))
    with pytest.raises(canonical.Unsuitable):
        canonical.rewritten(made(lambda: Wired(way)), (32, 32))


def test_models_say_so_as_a_capability():
    assert "relevance-rules" in conv_net().capabilities
    assert "relevance-rules" not in tiny_vit().capabilities
