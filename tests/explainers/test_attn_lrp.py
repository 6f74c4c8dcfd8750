from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fanlight.adapters.base import missing
from fanlight.explainers.attribution.attn_lrp import AttnLRP
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item
from support.tiny_vit import HEADS, network, tiny_vit

WAYS = ("fused", "written", "layer")


def without_biases(way, seed=0):
    """Two layers of attention in which nothing but the picture contributes."""
    net = network(seed, way=way)
    with torch.no_grad():
        net.prefix.zero_(), net.places.zero_()
        for module in net.modules():
            for name in ("bias", "in_proj_bias"):
                if getattr(module, name, None) is not None:
                    getattr(module, name).zero_()
    return net


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_with_constant_attention_and_without_biases_all_of_the_answer_arrives(way, gamma):
    for seed in range(3):
        model = classifier(without_biases(way, seed), 5, features_at="auto")
        for target in (Target(0), Target(3, 1)):
            (found,) = explained(AttnLRP, model, item(model, target=target), attention="constant", gamma=gamma)
            assert found.meta["conservation"] == pytest.approx(1, abs=1e-3)
            assert found.meta["total"] == pytest.approx(found.arrays["value"].sum(), rel=1e-3, abs=1e-5)


def test_with_attention_explained_there_is_a_gap_and_it_is_stated():
    gaps = []
    for seed in range(6):
        model = classifier(without_biases("fused", seed), 5, features_at="auto")
        (found,) = explained(AttnLRP, model, item(model))
        gap = abs(found.arrays["value"].astype(float).sum() / found.meta["f_x"] - 1)
        assert abs(found.meta["conservation"] - 1) == pytest.approx(gap, rel=1e-3, abs=1e-4)
        gaps.append(gap)
    assert max(gaps) > 0.05, "the softmax hands back what its inputs do not add up to"


def by_hand(net, x, target, attention):
    """The network written out once more in float64, each rule in its place."""
    p = {k: v.detach().double() for k, v in net.state_dict().items()}
    x = x.double()[None].clone().requires_grad_()

    def linear(h, name):
        return h @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def norm(h, name):
        centred = h - h.mean(-1, keepdim=True)
        spread = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt().detach()
        return centred / spread * p[f"{name}.weight"] + p[f"{name}.bias"]

    def half(y):
        return 0.5 * y + 0.5 * y.detach()

    def gelu(z):
        return z * (torch.special.ndtr(z)).detach()  # gelu(z) / z is the normal distribution function

    cells = nn.functional.conv2d(x, p["patches.weight"], p["patches.bias"], stride=8).flatten(2).transpose(1, 2)
    h = torch.cat([p["prefix"], cells], 1) + p["places"]
    for n in range(2):
        qkv = linear(norm(h, f"blocks.{n}.norm1"), f"blocks.{n}.attn.qkv")
        q, k, v = qkv.reshape(1, 17, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        rows = (half(q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5).softmax(-1)
        mixed = rows.detach() @ v if attention == "constant" else half(rows @ v)
        h = h + linear(mixed.transpose(1, 2).flatten(2), f"blocks.{n}.attn.out")
        inner = gelu(linear(norm(h, f"blocks.{n}.norm2"), f"blocks.{n}.mlp.0"))
        h = h + linear(inner, f"blocks.{n}.mlp.2")
    logits = linear(norm(h, "norm")[:, 0], "head")
    (slope,) = torch.autograd.grad(target.value(logits).sum(), x)
    return (x * slope).detach()[0].sum(0).numpy()


@pytest.mark.parametrize("attention", ["explained", "constant"])
@pytest.mark.parametrize("target", [Target(0), Target(3, 1)], ids=str)
def test_it_equals_the_rules_by_hand_in_float64(target, attention):
    model = tiny_vit(4)
    one = item(model, target=target)
    (found,) = explained(AttnLRP, model, one, attention=attention)
    twin = by_hand(model.net, one.x, target, attention)
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-4 * np.abs(twin).max())


@pytest.mark.parametrize("attention", ["explained", "constant"])
def test_attention_written_out_or_fused_gives_the_same_map(attention):
    fused, written = tiny_vit(2, "fused"), tiny_vit(2, "written")
    written.net.load_state_dict(fused.net.state_dict())
    maps = [
        explained(AttnLRP, m, item(m, target=Target(1)), attention=attention)[0].arrays["value"]
        for m in (fused, written)
    ]
    np.testing.assert_allclose(maps[0], maps[1], rtol=1e-3, atol=1e-4 * np.abs(maps[0]).max())


def test_the_answer_is_that_of_the_model_and_without_attention_it_is_refused():
    from fanlight.explainers.attribution.attn_lrp import simplified

    for way in WAYS:
        model = tiny_vit(3, way)
        x = torch.randn(2, 3, 32, 32)
        for gamma in (0.0, 0.3):
            with simplified(AttnLRP.Params(gamma=gamma)):
                modified = model.logits(x)
            torch.testing.assert_close(modified, model.logits(x), rtol=1e-4, atol=1e-5)
    assert missing(AttnLRP.needs, conv_net().capabilities) is not None
