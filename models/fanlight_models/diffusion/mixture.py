"""A denoiser that is exact: pictures from a finite Gaussian mixture, words that each rule some of its components out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.words import BadPrompt, Conditioning


class Mixture:
    """x = means[k] + sigma n, k with probability prior[k]; a word allows some k. A `Denoiser` for any log-SNR.

    means (N, C, h, w); words: name -> (N,) bool; prior (N,), uniform if left out."""

    def __init__(self, means: Tensor, sigma: float, words: Mapping[str, Tensor], prior: Tensor | None = None):
        self.means, self.sigma, self.words = means, sigma, dict(words)
        n = len(means)
        self.log_prior = (torch.full((n,), 1 / n).to(means) if prior is None else prior.to(means)).log()
        self.shape = (means.shape[1], means.shape[2], means.shape[3])
        self.logsnr, self.law = (-40.0, 40.0), Law()
        self.device = means.device

    def lost(self, text: str) -> str:  # noqa: ARG002 # nothing is too long for it
        return ""

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """Errors: BadPrompt for a word that is not of this world, or words that rule everything out."""
        every = []
        for prompt in prompts:
            allowed = self.log_prior.clone()
            for word in prompt.marked().split():
                if word != "_" and word not in self.words:
                    raise BadPrompt(f"“{word}” is no word of this world. Words: {', '.join(self.words)}.")
                if word != "_":
                    allowed = allowed.masked_fill(~self.words[word], -torch.inf)
            if not bool(torch.isfinite(allowed).any()):
                raise BadPrompt(f"No picture of this world fits “{prompt.text}”.")
            every.append(allowed - torch.logsumexp(allowed, 0))
        return {"log_prior": torch.stack(every)}

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        flat, means = z.flatten(1), self.means.flatten(1).to(z)
        g, rest = torch.sigmoid(alpha)[:, None].to(z), torch.sigmoid(-alpha)[:, None].to(z)
        v = g * self.sigma**2 + rest  # the variance of z given a component
        near = (g.sqrt() * flat @ means.T - g * (means**2).sum(1) / 2) / v  # (B, N), up to what all components share
        mean = torch.softmax(near + encoded["log_prior"].to(z), 1) @ means
        return (rest.sqrt() / v * (flat - g.sqrt() * mean)).reshape(z.shape)

    def log_likelihood(self, x: Tensor, prompts: Sequence[Conditioning]) -> Tensor:
        """x (C, h, w) -> log p(x | prompt) of each prompt, (n,), in nats, up to a constant that all share."""
        distance = ((x - self.means) ** 2).sum((1, 2, 3)) / (2 * self.sigma**2)
        return torch.logsumexp(self.encode(prompts)["log_prior"] - distance, 1)
