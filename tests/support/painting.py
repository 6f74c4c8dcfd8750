"""A small network that draws from words, for tests: numbers that a seed decides, every word known, no training."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import torch
from torch import Tensor, nn

from fanlight.adapters.text_to_image import Painter
from fanlight_models.diffusion import Conditioning, Law
from fanlight_models.diffusion.codec import SpaceToDepth
from fanlight_models.diffusion.protocol import Encoded

WORDS, WIDTH = 64, 8


class Net(nn.Module):
    """Latents (B, 12, h, w) and words (B, WIDTH) -> noise."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.first, self.last = nn.Conv2d(12, 16, 3, padding=1), nn.Conv2d(16, 12, 3, padding=1)
        self.said = nn.Linear(WIDTH, 16)

    def forward(self, z: Tensor, said: Tensor) -> Tensor:
        out: Tensor = self.last(torch.tanh(self.first(z) + self.said(said)[:, :, None, None]))
        return out


class Denoiser:
    """As `fanlight_models.diffusion.protocol.Denoiser` says."""

    def __init__(self, net: Net, side: int):
        self.net, self.device = net, torch.device("cpu")
        self.shape, self.logsnr, self.law = (12, side // 2, side // 2), (-8.0, 8.0), Law()

    def lost(self, text: str) -> str:  # noqa: ARG002 (all is seen)
        return ""

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        every = []
        for prompt in prompts:
            ids = [crc32(w.encode()) % WORDS for w in re.findall(r"\w+", prompt.marked().casefold())]
            with torch.inference_mode():
                said = self.net.words(torch.tensor(ids, dtype=torch.int64)).sum(0) if ids else torch.zeros(WIDTH)
            every.append(said.clone())
        return {"said": torch.stack(every)}

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        shown: Tensor = torch.sigmoid(-alpha).sqrt().to(z)[:, None, None, None]
        out: Tensor = shown * z + 0.3 * self.net(z, encoded["said"])
        return out


class Counted(Painter):
    """A contract test counts passes here; rows count in `asked`."""

    passes = 0


def painter(side: int = 64, seed: int = 0) -> Counted:
    """Pictures of `side` / 4 pixels, so that it is fast."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = Net()
    return Counted(Denoiser(net, side // 4), SpaceToDepth(2), net, identity=["tests", seed], name="Small painter")
