from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fanlight.explainers.attribution.attention_x_gradient import AttentionXGradient
from fanlight.explainers.base import Target
from support.explaining import explained, item
from support.tiny_vit import HEADS, tiny_vit


def twin(net, x, target, layers):
    """In float64; the slope of each attention by central differences, its rows moved by hand."""
    net = copy.deepcopy(net).double()
    n = 17

    def run(moved):
        """The answer, with `moved` {layer: (heads, N, N)} added to the attention; and the attention."""
        seen = []
        h = torch.cat([net.prefix, net.patches(x[None].double()).flatten(2).transpose(1, 2)], 1) + net.places
        for number, block in enumerate(net.blocks):
            q, k, v = block.attn.qkv(block.norm1(h)).reshape(n, 3, HEADS, -1).permute(1, 2, 0, 3)
            rows = (torch.einsum("hnd,hmd->hnm", q, k) / q.shape[-1] ** 0.5).softmax(-1)
            seen.append(rows.numpy())
            rows = rows + moved.get(number, 0)
            h = h + block.attn.out((rows @ v).permute(1, 0, 2).reshape(1, n, -1))
            h = h + block.mlp(block.norm2(h))
        return float(target.value(net.head(net.norm(h)[:, 0]))[0]), seen

    step = 1e-6
    with torch.no_grad():
        attention = run({})[1]
        flow = np.eye(n)
        for number in range(len(attention)) if layers == "all" else [len(attention) - 1]:
            slope = np.zeros((HEADS, n, n))
            for place in np.ndindex(HEADS, n, n):
                move = torch.zeros(HEADS, n, n, dtype=torch.float64)
                move[place] = step
                slope[place] = (run({number: move})[0] - run({number: -move})[0]) / (2 * step)
            flow = flow + np.maximum(attention[number] * slope, 0).mean(0) @ flow
    grid = torch.from_numpy(flow[0, 1:].reshape(1, 1, 4, 4))
    return F.interpolate(grid, (32, 32), mode="bilinear")[0, 0].numpy()


@pytest.mark.parametrize(("target", "layers"), [(Target(0), "all"), (Target(3, 1), "last")], ids=str)
def test_it_equals_the_equations_in_float64(target, layers):
    model = tiny_vit(5)
    one = item(model, target=target)
    (found,) = explained(AttentionXGradient, model, one, layers=layers)
    expected = twin(model.net, one.x, target, layers)
    np.testing.assert_allclose(found.arrays["value"], expected, rtol=1e-3, atol=1e-4 * expected.max())
    assert found.meta["layers"] == (2 if layers == "all" else 1) and found.meta["grid"] == [4, 4]


@pytest.mark.parametrize("prefix", [1, 3])
def test_it_depends_on_the_class_and_is_never_negative(prefix):
    model = tiny_vit(1, prefix=prefix)
    maps = [explained(AttentionXGradient, model, item(model, target=Target(t)))[0].arrays["value"] for t in range(3)]
    assert all(m.min() >= 0 and m.max() > 0 for m in maps)
    assert not np.allclose(maps[0], maps[1], rtol=0.05)


def test_fused_and_written_attention_give_the_same_map():
    fused, written = tiny_vit(2, "fused"), tiny_vit(2, "written")
    written.net.load_state_dict(fused.net.state_dict())
    maps = [explained(AttentionXGradient, m, item(m, target=Target(1)))[0].arrays["value"] for m in (fused, written)]
    np.testing.assert_allclose(maps[0], maps[1], rtol=1e-3, atol=1e-6)
