"""What a network is made of decides which methods hold for it; Captum says whether that is so."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from captum.attr import DeepLift
from torch import nn

from fanlight.adapters import structure
from support.explaining import conv_net, linear
from support.tiny_vit import tiny_vit


def tail(channels):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 4)]


def chain(*layers):
    return nn.Sequential(nn.Conv2d(3, 8, 3), *layers, nn.Conv2d(8, 8, 3), nn.ReLU(), *tail(8))


class Wired(nn.Module):
    """Two convolutions and what is done between and behind them."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.one, self.two, self.tail = nn.ReLU(), nn.Tanh(), nn.Sequential(*tail(8))

    def forward(self, x):
        y = self.first(x)
        if self.way == "residual":
            y = self.one(y)
            return self.tail(self.two(y + self.second(y)))
        if self.way == "functional":
            return self.tail(self.two(self.second(F.relu(y))))
        if self.way == "reused":
            return self.tail(self.one(self.second(self.one(y))))
        if self.way == "two readers":
            return self.tail(self.one(y) + self.two(y))
        if self.way == "gate":
            return self.tail(self.one(y) * self.two(self.second(y)))
        if self.way == "clamp":
            return self.tail(self.second(y.clamp(-0.1, 0.1)))
        return self.tail(self.second(y / (1 + y.mean())))


HOLDS = {
    "plain": lambda: chain(nn.ReLU()),
    "in place": lambda: chain(nn.ReLU(inplace=True)),
    "normalised": lambda: chain(nn.BatchNorm2d(8), nn.ELU(), nn.Dropout(), nn.AvgPool2d(2)),
    "pooled": lambda: chain(nn.ReLU(), nn.MaxPool2d(2)),
    "residual": lambda: Wired("residual"),
}
FAILS = {
    "functional": lambda: Wired("functional"),
    "reused": lambda: Wired("reused"),
    "two readers": lambda: Wired("two readers"),
    "gate": lambda: Wired("gate"),
    "clamp": lambda: Wired("clamp"),
    "division": lambda: Wired("division"),
    "clipped": lambda: chain(nn.Conv2d(8, 8, 1), nn.ReLU6()),
    "gelu": lambda: chain(nn.GELU()),
    "adjacent": lambda: chain(nn.ReLU(), nn.Identity(), nn.Tanh()),
    "overlapping windows": lambda: chain(nn.MaxPool2d(3, 2, 1)),
    "layer norm": lambda: chain(nn.LayerNorm(14)),
    "softmax": lambda: nn.Sequential(*list(chain(nn.ReLU())), nn.Softmax(1)),
}


def made(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().eval().requires_grad_(False)


@pytest.mark.parametrize("name", HOLDS)
def test_where_the_rescale_rule_holds_it_is_offered_and_adds_up(name):
    net = made(HOLDS[name])
    assert structure.look(net, (16, 16)).rescale
    x = 2 * torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Captum announces its hooks
        total = DeepLift(net).attribute(x, torch.zeros_like(x), target=1).flatten(1).sum(1)
    torch.testing.assert_close(total, (net(x) - net(torch.zeros_like(x)))[:, 1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", FAILS)
def test_where_it_does_not_it_is_not_offered(name):
    assert not structure.look(made(FAILS[name]), (16, 16)).rescale


def test_rectifiers_are_seen_as_modules_and_as_functions():
    assert structure.look(made(lambda: chain(nn.ReLU6())), (16, 16)).rectifiers
    assert structure.look(made(lambda: Wired("functional")), (16, 16)).rectifiers
    assert not structure.look(made(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), *tail(8))), (16, 16)).rectifiers


def test_models_say_so_as_capabilities_and_are_left_as_they_were():
    model = conv_net()
    assert {"rectifiers", "rescale-rule"} <= model.capabilities
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.net.modules())
    assert "rescale-rule" in linear().capabilities and "rectifiers" not in linear().capabilities
    assert not {"rectifiers", "rescale-rule"} & tiny_vit().capabilities
