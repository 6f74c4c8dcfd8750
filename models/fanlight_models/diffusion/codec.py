"""Between pictures and latents. Pictures are (B, 3, H, W) float32 from -1 to 1."""

from __future__ import annotations

from typing import Any, Protocol

import torch.nn.functional as F
from torch import Tensor


class Codec(Protocol):
    """factor: pixels of a picture per latent pixel and side. channels: of a latent."""

    factor: int
    channels: int

    def encode(self, pictures: Tensor) -> Tensor: ...

    def decode(self, latents: Tensor) -> Tensor: ...


class SpaceToDepth:
    """The pixels of a block of `factor` x `factor` become the channels of one latent pixel. Nothing is lost and no length changes, so that
    information is that of the picture."""

    def __init__(self, factor: int = 2):
        self.factor, self.channels = factor, 3 * factor * factor

    def encode(self, pictures: Tensor) -> Tensor:
        return F.pixel_unshuffle(pictures, self.factor)

    def decode(self, latents: Tensor) -> Tensor:
        return F.pixel_shuffle(latents, self.factor)


class Autoencoder:
    """An `AutoencoderKL` of diffusers. Uploaded pictures get the most likely latent, not a drawn one, so that the same picture is the same latent."""

    def __init__(self, vae: Any):
        self.vae = vae
        self.factor = 2 ** (len(vae.config.block_out_channels) - 1)
        self.channels = int(vae.config.latent_channels)
        self.scale, self.shift = float(vae.config.scaling_factor), float(getattr(vae.config, "shift_factor", None) or 0)

    def encode(self, pictures: Tensor) -> Tensor:
        mode: Tensor = self.vae.encode(pictures.to(self.vae.dtype)).latent_dist.mode()
        return (mode.float() - self.shift) * self.scale

    def decode(self, latents: Tensor) -> Tensor:
        pictures: Tensor = self.vae.decode((latents / self.scale + self.shift).to(self.vae.dtype)).sample
        return pictures.float()
