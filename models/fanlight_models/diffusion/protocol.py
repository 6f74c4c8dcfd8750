"""What a text-to-image model offers: encode prompts once, then predict the noise in rows of any of them. docs/diffusion.md describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.words import Conditioning

Encoded = Mapping[str, Tensor]
"""Prompts as a model wants them: tensors with one row per prompt, so that rows can be picked and repeated."""


def rows(encoded: Encoded, which: Tensor) -> dict[str, Tensor]:
    """Some rows of encoded prompts. which: (B,) int64."""
    return {name: value[which.to(value.device)] for name, value in encoded.items()}


class Denoiser(Protocol):
    """C channels on a grid of h x w latent pixels. In eval mode; the calls run without gradient and leave it as it was.

    The noise is that of the plain conditional model: guidance 1, which is what information is about."""

    shape: tuple[int, int, int]
    """(C, h, w) of a latent."""
    logsnr: tuple[float, float]
    """The log-SNRs it was trained on."""
    law: Law
    """Where it is asked unless somebody says otherwise: around the log-SNRs at which words make a difference."""
    device: torch.device

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """Errors: BadPrompt where a prompt holds what the model has no word for."""
        ...

    def lost(self, text: str) -> str:
        """The end of a prompt that the text encoder never sees because it is too long; empty where all is seen."""
        ...

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        """z (B, C, h, w) at log-SNRs alpha (B,), row b under prompt b -> the predicted noise (B, C, h, w)."""
        ...


class Attending(Denoiser, Protocol):
    """A denoiser whose cross-attention can be read."""

    def tokens(self, prompt: Conditioning, span: tuple[int, int]) -> list[int]:
        """Which rows of attention belong to the characters start..end of a prompt."""
        ...

    def noise_and_attention(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """The noise as above and attention (B, T, h, w): how much each place looks at each of T tokens, mean over layers and all heads."""
        ...
