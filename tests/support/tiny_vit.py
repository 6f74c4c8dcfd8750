"""A vision transformer small enough to be computed by hand, its attention fused, written out, or torch's own layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.explaining import Counting, classifier

Way = Literal["fused", "written", "layer"]
D, HEADS, PATCH = 8, 2, 8
Array = np.ndarray[Any, np.dtype[np.float64]]


class Attention(nn.Module):
    def __init__(self, way: Way):
        super().__init__()
        self.way = way
        if way == "layer":
            self.layer = nn.MultiheadAttention(D, HEADS, batch_first=True)
        else:
            self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "layer":
            return self.layer(x, x, x, need_weights=False)[0]
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)  # (B, heads, N, d) each
        if self.way == "fused":
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            mixed = F.dropout((q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1), 0.1, self.training) @ v
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, way: Way):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(D), Attention(way), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    """(B, 3, H, W) -> (B, K): patches of 8 pixels, `prefix` tokens before them, the first of which is read out."""

    def __init__(self, size: tuple[int, int], classes: int, prefix: int, way: Way, depth: int):
        super().__init__()
        self.patches = nn.Conv2d(3, D, PATCH, PATCH)
        tokens = prefix + (size[0] // PATCH) * (size[1] // PATCH)
        self.prefix = nn.Parameter(torch.randn(1, prefix, D))
        self.places = nn.Parameter(torch.randn(1, tokens, D))
        self.blocks = nn.ModuleList([Block(way) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, classes)

    def forward(self, x: Tensor) -> Tensor:
        cells = self.patches(x).flatten(2).transpose(1, 2)  # (B, h w, D)
        tokens = torch.cat([self.prefix.expand(len(x), -1, -1), cells], 1) + self.places
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens)[:, 0])


def network(
    seed: int = 0,
    size: tuple[int, int] = (32, 32),
    classes: int = 5,
    prefix: int = 1,
    way: Way = "fused",
    depth: int = 2,
) -> TinyViT:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = TinyViT(size, classes, prefix, way, depth)
        for layer in net.modules():
            if isinstance(layer, (nn.Linear, nn.MultiheadAttention)):
                for p in layer.parameters():
                    nn.init.normal_(p, std=0.5)
    return net


def tiny_vit(seed: int = 0, way: Way = "fused", prefix: int = 1, features_at: str | None = "auto") -> Counting:
    return classifier(network(seed, prefix=prefix, way=way), 5, features_at=features_at)


def twin(net: TinyViT) -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    """The network in numpy, float64, one picture at a time, cut at the input norm of its last block.

    Returns: picture (3, H, W) -> the tokens before the last block (N, D); and those with the norm's output (N, D),
    which may be changed, -> logits (K,).
    """
    w = {k: v.detach().double().numpy() for k, v in net.state_dict().items()}

    def norm(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def attend(x: Array, name: str) -> Array:
        q, k, v = np.split(linear(x, f"{name}.qkv"), 3, axis=1)
        mixed = np.zeros_like(q)
        d = D // HEADS
        for head in range(HEADS):
            part = slice(head * d, (head + 1) * d)
            for n in range(len(x)):
                e = np.exp(k[:, part] @ q[n, part] / np.sqrt(d))
                mixed[n, part] = (e / e.sum()) @ v[:, part]
        return linear(mixed, f"{name}.out")

    def gelu(x: Array) -> Array:
        return x * torch.special.ndtr(torch.from_numpy(x)).numpy()

    def block(x: Array, normed: Array, name: str) -> Array:
        x = x + attend(normed, f"{name}.attn")
        return x + linear(gelu(linear(norm(x, f"{name}.norm2"), f"{name}.mlp.0")), f"{name}.mlp.2")

    def before(picture: Array) -> Array:
        rows, columns = picture.shape[1] // PATCH, picture.shape[2] // PATCH
        cells = [
            np.einsum("dchw,chw->d", w["patches.weight"], picture[:, PATCH * r :, PATCH * c :][:, :PATCH, :PATCH])
            for r in range(rows)
            for c in range(columns)
        ]
        x = np.concatenate([w["prefix"][0], np.stack(cells) + w["patches.bias"]]) + w["places"][0]
        for n in range(len(net.blocks) - 1):
            x = block(x, norm(x, f"blocks.{n}.norm1"), f"blocks.{n}")
        return x

    def after(x: Array, normed: Array) -> Array:
        out = block(x, normed, f"blocks.{len(net.blocks) - 1}")
        return linear(norm(out, "norm")[0], "head")

    before.norm = lambda x: norm(x, f"blocks.{len(net.blocks) - 1}.norm1")  # type: ignore[attr-defined]
    return before, after
