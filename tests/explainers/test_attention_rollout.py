from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fanlight.adapters.base import missing
from fanlight.explainers.attribution.attention_rollout import AttentionRollout
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item
from support.tiny_vit import HEADS, network, tiny_vit


def rows_of(net, x):
    """The attention of each layer in float64, from the network's weights: [(heads, N, N)]."""
    net = copy.deepcopy(net).double()
    found = []
    with torch.no_grad():
        h = torch.cat([net.prefix, net.patches(x[None].double()).flatten(2).transpose(1, 2)], 1) + net.places
        for block in net.blocks:
            q, k, _ = block.attn.qkv(block.norm1(h)).reshape(h.shape[1], 3, HEADS, -1).permute(1, 2, 0, 3)
            score = torch.einsum("hnd,hmd->hnm", q, k) / q.shape[-1] ** 0.5
            found.append((score.exp() / score.exp().sum(-1, keepdim=True)).numpy())
            h = block(h)
    return found


@pytest.mark.parametrize(("heads", "residual"), [("mean", 0.5), ("max", 0.5), ("min", 0.2)])
@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_it_equals_the_product_in_float64(heads, residual, prefix):
    net = network(2, prefix=prefix)
    if prefix == 0:
        net.forward = lambda x: _averaged(net, x)
    model = classifier(net, 5, features_at="auto")
    one = item(model)
    (found,) = explained(AttentionRollout, model, one, heads=heads, residual=residual)
    n = 16 + prefix
    flow = np.eye(n)
    for rows in rows_of(network(2, prefix=prefix), one.x):
        one_head = {"mean": rows.mean(0), "max": rows.max(0), "min": rows.min(0)}[heads]
        one_head = one_head / one_head.sum(1)[:, None]
        flow = ((1 - residual) * one_head + residual * np.eye(n)) @ flow
    share = flow[0] if prefix else flow.mean(0)
    grid = torch.from_numpy(share[prefix:].reshape(1, 1, 4, 4))
    twin = F.interpolate(grid, (32, 32), mode="bilinear")[0, 0].numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-4, atol=1e-7)
    assert flow.sum(1) == pytest.approx(1) and found.meta["grid"] == [4, 4]


def _averaged(net, x):
    """A model that reads its answer from the mean of its patches."""
    h = net.patches(x).flatten(2).transpose(1, 2) + net.places
    for block in net.blocks:
        h = block(h)
    return net.head(net.norm(h).mean(1))


def test_it_is_the_same_for_every_class_and_not_offered_without_attention():
    model = tiny_vit(1)
    maps = [
        explained(AttentionRollout, model, item(model, target=t))[0].arrays["value"] for t in (Target(0), Target(4, 1))
    ]
    np.testing.assert_array_equal(maps[0], maps[1])
    assert missing(AttentionRollout.needs, conv_net().capabilities) is not None


def test_a_layer_that_attends_to_itself_alone_changes_nothing():
    model = tiny_vit(0)
    (most,) = explained(AttentionRollout, model, item(model), residual=0.95)
    (least,) = explained(AttentionRollout, model, item(model), residual=0)
    assert most.arrays["value"].max() < 0.2 * least.arrays["value"].max(), "the class token keeps to itself"
