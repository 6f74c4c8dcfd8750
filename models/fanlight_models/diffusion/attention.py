"""Cross-attention, read in the forward passes that measure information anyway: what DAAM shows (Tang et al., ACL 2023), written anew.

Every layer of the ways down and up that looks at the text is read, the middle is not [REPO, castorini/daam]. Two differences: rows are taken by
their place in the batch, where the public code takes the last half of (heads x batch), which at guidance 1 is half of the heads; and layers whose
grid is an eighth of the latent's or coarser are left out by that rule, where the code lists factors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

COARSEST = 8


class _Looking:
    """A processor of diffusers' attention that keeps the probabilities: mean over all heads, (B, N, T)."""

    def __init__(self, kept: list[Tensor]):
        self.kept = kept

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,  # noqa: ARG002 # part of the signature that diffusers calls
    ) -> Tensor:
        before, grid = hidden_states, hidden_states.shape
        if hidden_states.ndim == 4:
            hidden_states = hidden_states.flatten(2).transpose(1, 2)
        if attn.group_norm is not None:
            hidden_states = attn.group_norm(hidden_states.transpose(1, 2)).transpose(1, 2)
        text = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        if attn.norm_cross is not None and encoder_hidden_states is not None:
            text = attn.norm_encoder_hidden_states(text)
        batch, length, _ = text.shape
        query, key, value = (
            part.unflatten(2, (attn.heads, -1)).transpose(1, 2)  # (B, heads, N or T, d)
            for part in (attn.to_q(hidden_states), attn.to_k(text), attn.to_v(text))
        )
        scores = query.float() @ key.float().mT * attn.scale
        if attention_mask is not None:
            mask = attn.prepare_attention_mask(attention_mask, length, batch)
            scores = scores + mask.view(batch, attn.heads, -1, mask.shape[-1])
        looks = scores.softmax(-1)
        self.kept.append(looks.mean(1))
        out = (looks.to(value.dtype) @ value).transpose(1, 2).flatten(2)
        out = attn.to_out[1](attn.to_out[0](out))
        if before.ndim == 4:
            out = out.transpose(1, 2).reshape(grid)
        if attn.residual_connection:
            out = out + before
        result: Tensor = out / attn.rescale_output_factor
        return result


@contextmanager
def looking(unet: Any) -> Iterator[list[Tensor]]:
    """While it is open, a forward pass of the UNet leaves the attention of every layer in the list. The processors are put back afterwards."""
    kept: list[Tensor] = []
    before = unet.attn_processors
    unet.set_attn_processor(
        {
            name: _Looking(kept) if ".attn2." in name and not name.startswith("mid_block") else processor
            for name, processor in before.items()
        }
    )
    try:
        yield kept
    finally:
        unet.set_attn_processor(before)


def maps(kept: list[Tensor], grid: tuple[int, int]) -> Tensor:
    """Attention of the layers (B, N, T) -> (B, T, h, w): each brought to the latent's grid, negative overshoot cut, mean over layers.

    Errors: ValueError where no layer is fine enough."""
    rows, columns = grid
    out: list[Tensor] = []
    for looks in kept:
        factor = (rows * columns / looks.shape[1]) ** 0.5
        if factor >= COARSEST:
            continue
        shape = (round(rows / factor), round(columns / factor))
        small = looks.transpose(1, 2).reshape(len(looks), -1, *shape)  # (B, T, h', w')
        out.append(F.interpolate(small, grid, mode="bicubic").clamp_min(0) if shape != grid else small)
    if not out:
        raise ValueError("No layer of this network looks at the text on a grid that is fine enough.")
    return torch.stack(out).mean(0)
