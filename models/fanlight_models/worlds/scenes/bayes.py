"""The optimal denoiser of the scenes, for any words of a prompt: no training, no error.

Given the classes of the two objects the halves are independent mixtures of 33 places, so a posterior takes 264 distances per half and a table of
8 x 8 classes that the words have weighted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.words import BadPrompt, Conditioning
from fanlight_models.worlds.scenes.drawing import PLACES, SIGMA, halves
from fanlight_models.worlds.scenes.variants import IGNORED, World

CLASSES = 8
LAWS = {16: Law(), 32: Law(-4.0, 1.5, -9.0, 3.0)}
"""Where words make a difference. An object of four times as many pixels is told apart in four times as much noise: log 4 = 1.4 lower."""
SLOTS = 64  # words of a prompt at most


class Bayes:
    """A `Denoiser` for any log-SNR.

    side: of the picture, 16 or 32. fold: pixels of a latent pixel per side (the codec's; 1: latents are pictures)."""

    def __init__(
        self, world: World, side: int = 16, fold: int = 1, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32,
    ):  # fmt: skip
        means, _ = halves(side)
        self.world, self.side, self.fold = world, side, fold
        self.device, self.logsnr, self.law = torch.device(device), (-40.0, 40.0), LAWS[side]
        self.shape = (3 * fold * fold, side // fold, side // fold)
        self.means = torch.from_numpy(means).flatten(1).to(device, dtype)  # (264, 3 side side / 2)
        self.squares = (self.means**2).sum(1)
        self.prior = torch.tensor([r.weight for r in world.rows], dtype=torch.float64)
        self.pair = torch.tensor([CLASSES * r.left + r.right for r in world.rows])
        self._ways = lru_cache(4096)(world.ways)

    def lost(self, text: str) -> str:
        """What is behind the 64th word."""
        words = list(re.finditer(r"\w+", text))
        return "" if len(words) <= SLOTS else text[words[SLOTS].start() :]

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """log P(classes of left and right | words), (n, 8, 8). Errors: BadPrompt for words that are not of this world, or fit nothing."""
        known, every = {*self.world.vocabulary, "_"}, []
        for prompt in prompts:
            words = tuple(w for w in re.findall(r"\w+", prompt.marked().casefold())[:SLOTS] if w not in IGNORED)
            strange = [w for w in words if w not in known]
            if strange:
                raise BadPrompt(f"“{strange[0]}” is no word of this world. Words: {', '.join(self.world.vocabulary)}.")
            chance = self.prior * torch.tensor(self._ways(words), dtype=torch.float64)
            if float(chance.sum()) == 0:
                raise BadPrompt(
                    f"No scene of this world is described by “{prompt.text}”. One is “{self.world.rows[0].text}”."
                )
            table = torch.zeros(CLASSES * CLASSES, dtype=torch.float64).index_add_(0, self.pair, chance / chance.sum())
            every.append(table.log().view(CLASSES, CLASSES))
        return {"log_prior": torch.stack(every).to(self.device, self.means.dtype)}

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        dtype = z.dtype
        z = z.to(self.means.dtype)
        if self.fold > 1:
            z = F.pixel_shuffle(z, self.fold)
        g, rest = (torch.sigmoid(a)[:, None].to(z) for a in (alpha, -alpha))
        variance = g * SIGMA**2 + rest
        near, whole, flat = self._near(z, g.sqrt(), g, variance)
        joint = encoded["log_prior"] + whole[0][:, :, None] + whole[1][:, None, :]  # (B, 8, 8)
        joint = joint - torch.logsumexp(joint, (1, 2), keepdim=True)
        out = []
        for side in range(2):
            share = torch.logsumexp(joint, 2 - side)  # (B, 8), of this half's classes
            places = near[side] - whole[side][:, :, None] + share[:, :, None]  # (B, 8, 33)
            mean = places.flatten(1).exp() @ self.means
            out.append(rest.sqrt() / variance * (flat[side] - g.sqrt() * mean))
        noise = torch.cat([part.view(len(z), 3, self.side, self.side // 2) for part in out], 3)
        return (F.pixel_unshuffle(noise, self.fold) if self.fold > 1 else noise).to(dtype)

    def _near(
        self, z: Tensor, scale: Tensor | float, square: Tensor | float, variance: Tensor | float
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Of each half: log-likelihood of class and place (B, 8, 33) up to what all share, its sum over places (B, 8), the half itself (B, D)."""
        flat = [half.flatten(1) for half in torch.split(z, self.side // 2, 3)]
        near = [
            ((scale * half @ self.means.T - square * self.squares / 2) / variance).view(-1, CLASSES, len(PLACES))
            for half in flat
        ]
        return near, [torch.logsumexp(n, 2) for n in near], flat

    def information(self, x: Tensor, base: Conditioning, full: Conditioning) -> float:
        """Exact i(x; full | base) = log p(x | full) - log p(x | base) of a latent (C, h, w), in nats."""
        z = x[None].to(self.means.dtype)
        if self.fold > 1:
            z = F.pixel_shuffle(z, self.fold)
        _, whole, _ = self._near(z, 1.0, 1.0, SIGMA**2)
        prior = self.encode([base, full])["log_prior"]
        said = torch.logsumexp(prior.double() + whole[0].double()[:, :, None] + whole[1].double()[:, None, :], (1, 2))
        return float(said[1] - said[0])
