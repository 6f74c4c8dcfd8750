"""Attention is read from any network in one graph, without changing what it answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fanlight.adapters.attention import Tap
from fanlight.errors import InvalidField
from support.explaining import classifier, conv_net
from support.tiny_vit import network, tiny_vit

WAYS = ("fused", "written", "layer")


@pytest.mark.parametrize("way", WAYS)
def test_rows_sum_to_one_and_the_logits_are_those_without_the_tap(way):
    model = tiny_vit(1, way)
    assert "attention" in model.capabilities
    x = torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        plain = model.logits(x)
        logits, rows, prefix, grid = model.attentions(x)
    assert (prefix, grid) == (1, (4, 4)) and [a.shape for a in rows] == [(3, 2, 17, 17)] * 2
    torch.testing.assert_close(logits, plain, rtol=0, atol=1e-5)
    for a in rows:
        torch.testing.assert_close(a.sum(-1), torch.ones(3, 2, 17), rtol=0, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_the_logits_can_be_differentiated_with_respect_to_the_rows(way):
    """What autograd says of one row of the last layer against a step along it, in float64."""
    model = classifier(network(2, way=way).double(), 5, features_at="auto")
    x = torch.randn(1, 3, 32, 32, dtype=torch.float64).requires_grad_()
    logits, rows, _, _ = model.attentions(x)
    slopes = torch.autograd.grad(logits[0, 0], rows)
    assert all(s.any() for s in slopes)
    # only the class token's row of the last layer reaches the logits
    assert slopes[-1][0, :, 0].any() and not slopes[-1][0, :, 1:].any()

    net, last = model.net, model.net.blocks[-1].attn
    with torch.no_grad():
        w, b = (
            (last.layer.in_proj_weight, last.layer.in_proj_bias) if way == "layer" else (last.qkv.weight, last.qkv.bias)
        )
        wo, bo = (
            (last.layer.out_proj.weight, last.layer.out_proj.bias)
            if way == "layer"
            else (last.out.weight, last.out.bias)
        )
        inputs = []
        hook = net.blocks[-1].register_forward_pre_hook(lambda _m, given: inputs.append(given[0]))
        net(x)
        hook.remove()
        start = inputs[0]
        value = F.linear(net.blocks[-1].norm1(start), w, b).chunk(3, -1)[2].reshape(17, 2, 4)

        def answer(a):
            mixed = torch.einsum("hnm,mhd->nhd", a, value).reshape(1, 17, 8)
            tokens = start + F.linear(mixed, wo, bo)
            tokens = tokens + net.blocks[-1].mlp(net.blocks[-1].norm2(tokens))
            return net.head(net.norm(tokens)[:, 0])[0, 0]

        a = rows[-1][0].detach()
        torch.testing.assert_close(answer(a), logits[0, 0].detach())
        for head, token in ((0, 0), (1, 5), (0, 16)):
            step = torch.zeros_like(a)
            step[head, 0, token] = 1e-6
            slope = (answer(a + step) - answer(a - step)) / 2e-6
            np.testing.assert_allclose(slope, slopes[-1][0, head, 0, token], rtol=1e-6, atol=1e-9)


def test_the_three_ways_of_writing_attention_give_the_same_rows():
    fused, layer = network(4, way="fused"), network(4, way="layer")
    for a, b in zip(fused.blocks, layer.blocks, strict=True):
        b.attn.layer.in_proj_weight.data, b.attn.layer.in_proj_bias.data = a.attn.qkv.weight.data, a.attn.qkv.bias.data
        b.attn.layer.out_proj.weight.data, b.attn.layer.out_proj.bias.data = (
            a.attn.out.weight.data,
            a.attn.out.bias.data,
        )
    written = network(4, way="written")
    written.load_state_dict(fused.state_dict())
    layer.load_state_dict({**layer.state_dict(), **{k: v for k, v in fused.state_dict().items() if "attn" not in k}})
    x = torch.randn(2, 3, 32, 32)
    found = [classifier(net, 5).attentions(x) for net in (fused, written, layer)]
    for logits, rows, _, _ in found[1:]:
        torch.testing.assert_close(logits, found[0][0])
        for mine, theirs in zip(rows, found[0][1], strict=True):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": torch.ones(6, 6, dtype=torch.bool).triu().T},
        {"attn_mask": torch.linspace(-1, 1, 36).reshape(6, 6)},
        {"enable_gqa": True},
    ],
    ids=["plain", "causal", "scale", "hidden", "added", "grouped"],
)
def test_the_fused_kernel_is_computed_as_documented(options):
    q = torch.randn(2, 4, 6, 8)
    k, v = (torch.randn(2, 2 if "enable_gqa" in options else 4, 6, 8) for _ in range(2))
    expected = F.scaled_dot_product_attention(q, k, v, **options)
    with Tap() as tap:
        found = F.scaled_dot_product_attention(q, k, v, **options)
    torch.testing.assert_close(found, expected)
    assert len(tap.rows) == 1


def test_torch_layers_with_masks_run_as_they_are_and_are_not_kept():
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x, mask = torch.randn(2, 5, 8), torch.zeros(2, 5, dtype=torch.bool)
    mask[:, -1] = True
    expected = layer(x, x, x, key_padding_mask=mask)
    with Tap() as tap:
        found = layer(x, x, x, key_padding_mask=mask)
        other = layer(x[:, :2], x, x)[0]
        weighted = layer(x, x, x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(other, layer(x[:, :2], x, x)[0])
    torch.testing.assert_close(weighted, layer(x, x, x))
    assert len(tap.rows) == 1


def test_a_softmax_that_is_no_attention_is_not_kept():
    class Gate(nn.Module):
        def forward(self, x):
            square = x.softmax(-1)  # (B, 3, 32, 32), and no product after it
            return (square * x).mean((2, 3))

    with Tap() as tap:
        Gate()(torch.randn(1, 3, 32, 32))
    assert not tap.rows
    assert "attention" not in classifier(Gate(), 3).capabilities


def test_a_network_without_attention_says_so():
    model = conv_net()
    assert "attention" not in model.capabilities
    with pytest.raises(InvalidField, match="attention of this model cannot be read"):
        model.attentions(torch.zeros(1, 3, 32, 32))


def test_the_tap_leaves_nothing_behind():
    model = tiny_vit(way="fused")
    with pytest.raises(RuntimeError):
        model.attentions(torch.zeros(1, 5, 32, 32))
    q = torch.randn(1, 1, 3, 4)
    assert torch.equal(F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.net.modules())
