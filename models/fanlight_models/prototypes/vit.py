"""Vision transformers whose tokens prototypes are compared with: DeiT and CaiT, with the names of timm's weights, so that published ones load.

DeiT: Touvron et al., ICML 2021; CaiT: Touvron et al., ICCV 2021 (class attention, layer scale, talking heads). Only what a forward pass of
`tokens` needs; there is no classifier in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPSILON = 1e-6  # of every layer normalisation


@dataclass(frozen=True)
class Shape:
    """What a backbone looks like.

    Args:
        kind: deit | cait here, efficientnet-lite0 in `cells`.
        size: pixels of the square input. patch: pixels of a square patch. width: D. depth: blocks. heads: of attention.
        class_depth: class-attention blocks of a CaiT.
        drop: share of residual branches left out at the last block while training (stochastic depth, rising from 0).
    """

    kind: str = "deit"
    size: int = 224
    patch: int = 16
    width: int = 192
    depth: int = 12
    heads: int = 3
    class_depth: int = 2
    drop: float = 0.0

    @property
    def grid(self) -> tuple[int, int]:
        return self.size // self.patch, self.size // self.patch

    def check(self) -> Shape:
        """Returns itself. Errors: ValueError."""
        if self.kind not in ("deit", "cait"):
            raise ValueError(f"There is no backbone “{self.kind}”; allowed are deit, cait and efficientnet-lite0.")
        if self.size % self.patch:
            raise ValueError(f"A picture of {self.size} px is not cut into whole patches of {self.patch} px.")
        if self.width % self.heads:
            raise ValueError(f"A width of {self.width} is not shared out evenly by {self.heads} heads.")
        return self


PUBLISHED = {
    "deit_tiny_patch16_224": Shape("deit", width=192, depth=12, heads=3, drop=0.1),
    "deit_small_patch16_224": Shape("deit", width=384, depth=12, heads=6, drop=0.1),
    "cait_xxs24_224": Shape("cait", width=192, depth=24, heads=4, drop=0.1),
}


def build(shape: Shape) -> Backbone:
    return (Cait if shape.check().kind == "cait" else Deit)(shape)


class Backbone(nn.Module):
    """What both share. `forward`: (B, 3, H, W) -> the class token (B, D) and the patch tokens (B, N, D), after the last normalisation."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        rows, columns = shape.grid
        self.cls_token = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.patch_embed = PatchEmbed(shape)
        self.pos_embed = nn.Parameter(torch.zeros(1, rows * columns + (shape.kind == "deit"), shape.width))
        self.norm = nn.LayerNorm(shape.width, EPSILON)

    def tokens(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, N, D): each patch token less the class token [PAPER]. The class token knows the whole picture, so that every
        difference holds something of what is elsewhere (Table 6: the heat of a token is less stable without it)."""
        whole, patches = self(x)
        difference: Tensor = patches - whole[:, None]
        return difference


class PatchEmbed(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.proj = nn.Conv2d(3, shape.width, shape.patch, shape.patch)

    def forward(self, x: Tensor) -> Tensor:
        patches: Tensor = self.proj(x).flatten(2).transpose(1, 2)
        return patches


class Mlp(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(F.gelu(self.fc1(x)))
        return out


class DropPath(nn.Module):
    """Leaves out a residual branch for a share of the pictures of a batch while training, and makes up for it in the others."""

    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.share == 0:
            return x
        kept = torch.rand(len(x), *(1,) * (x.ndim - 1), device=x.device) >= self.share
        return x * kept / (1 - self.share)


def shares(shape: Shape) -> list[float]:
    return [shape.drop * i / max(shape.depth - 1, 1) for i in range(shape.depth)]


# --- DeiT


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, count, width))
        return out


class Block(nn.Module):
    def __init__(self, width: int, heads: int, drop: float):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, EPSILON), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, EPSILON), Mlp(width)
        self.drop_path = DropPath(drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x)))
        out: Tensor = x + self.drop_path(self.mlp(self.norm2(x)))
        return out


class Deit(Backbone):
    def __init__(self, shape: Shape):
        super().__init__(shape)
        self.blocks = nn.ModuleList(Block(shape.width, shape.heads, drop) for drop in shares(shape))
        initialise(self)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch_embed(x)], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return x[:, 0], x[:, 1:]


# --- CaiT


class TalkingHeads(nn.Module):
    """Attention whose heads are mixed before and after the softmax."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.proj_l, self.proj_w = nn.Linear(heads, heads), nn.Linear(heads, heads)

    def forward(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = self.proj_l((q * self.scale @ k.transpose(-2, -1)).permute(0, 2, 3, 1))
        weights = self.proj_w(scores.softmax(2)).permute(0, 3, 1, 2)  # over the tokens that are looked at
        out: Tensor = self.proj((weights @ v).transpose(1, 2).reshape(batch, count, width))
        return out


class ClassAttention(nn.Module):
    """The class token looks at itself and the patches; these stay as they are."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        batch, _, width = x.shape
        q, k, v = (
            part(given).reshape(batch, -1, self.heads, width // self.heads).transpose(1, 2)
            for part, given in ((self.q, x[:, :1]), (self.k, x), (self.v, x))
        )
        mixed = F.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, 1, width))
        return out


class ScaledBlock(nn.Module):
    def __init__(self, width: int, heads: int, drop: float):
        super().__init__()
        self.gamma_1, self.gamma_2 = (nn.Parameter(torch.full((width,), 1e-5)) for _ in range(2))
        self.norm1, self.attn = nn.LayerNorm(width, EPSILON), TalkingHeads(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, EPSILON), Mlp(width)
        self.drop_path = DropPath(drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path(self.gamma_1 * self.attn(self.norm1(x)))
        out: Tensor = x + self.drop_path(self.gamma_2 * self.mlp(self.norm2(x)))
        return out


class ClassBlock(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.gamma_1, self.gamma_2 = (nn.Parameter(torch.full((width,), 1e-5)) for _ in range(2))
        self.norm1, self.attn = nn.LayerNorm(width, EPSILON), ClassAttention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, EPSILON), Mlp(width)

    def forward(self, whole: Tensor, patches: Tensor) -> Tensor:
        whole = whole + self.gamma_1 * self.attn(self.norm1(torch.cat([whole, patches], 1)))
        out: Tensor = whole + self.gamma_2 * self.mlp(self.norm2(whole))
        return out


class Cait(Backbone):
    def __init__(self, shape: Shape):
        super().__init__(shape)
        self.blocks = nn.ModuleList(ScaledBlock(shape.width, shape.heads, drop) for drop in shares(shape))
        self.blocks_token_only = nn.ModuleList(ClassBlock(shape.width, shape.heads) for _ in range(shape.class_depth))
        initialise(self)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.patch_embed(x) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        whole = self.cls_token.expand(len(x), -1, -1)
        for block in self.blocks_token_only:
            whole = block(whole, x)
        x = self.norm(torch.cat([whole, x], 1))
        return x[:, 0], x[:, 1:]


def initialise(net: Backbone) -> None:
    """Truncated normal, deviation 0.02, without biases."""
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            nn.init.zeros_(module.bias)
    for free in (net.cls_token, net.pos_embed):
        nn.init.trunc_normal_(free, std=0.02)
