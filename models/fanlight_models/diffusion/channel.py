"""The noisy channel, and where along it a model is asked: log-SNRs from a truncated logistic law, with noise that all conditionings share.

alpha is the log-SNR, g = sigmoid(alpha), z = sqrt(g) x + sqrt(1 - g) eps. All logarithms are natural. The law is that of the public code of
*Interpretable Diffusion via Information Decomposition* (arXiv 2310.07972); strata, pairs and the truncation at the trained range are ours.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MOST_NODES = 4096


def shares(alpha: Tensor) -> tuple[Tensor, Tensor]:
    """alpha (B,) -> sqrt(g) and sqrt(1 - g), each (B, 1, 1, 1)."""
    return torch.sigmoid(alpha).sqrt()[:, None, None, None], torch.sigmoid(-alpha).sqrt()[:, None, None, None]


def noised(x: Tensor, noise: Tensor, alpha: Tensor) -> Tensor:
    """x and noise (B, C, h, w), alpha (B,) -> z (B, C, h, w)."""
    signal, rest = shares(alpha)
    return signal * x + rest * noise


@dataclass(frozen=True)
class Law:
    """A logistic law of alpha, truncated to [low, high]; an integral over alpha is the mean of weight * integrand under it.

    Default: loc 1, scale 2, three scales to either side [REPO]. Errors: ValueError."""

    loc: float = 1.0
    scale: float = 2.0
    low: float = -5.0
    high: float = 7.0

    def __post_init__(self) -> None:
        if not (self.scale > 0 and self.low < self.high and math.isfinite(self.low + self.high + self.loc)):
            raise ValueError(
                f"A law of log-SNRs has a scale above 0 and low < high, not scale {self.scale} on [{self.low}, {self.high}]."
            )

    @classmethod
    def over(cls, trained: tuple[float, float], clip: float = 3.0) -> Law:
        """Centred on the trained range, whose ends are `clip` scales away."""
        low, high = trained
        return cls((low + high) / 2, (high - low) / (2 * clip), low, high)

    def within(self, trained: tuple[float, float]) -> Law:
        """Cut to where the model was trained: outside it would be told another noise level than it sees."""
        return Law(self.loc, self.scale, max(self.low, trained[0]), min(self.high, trained[1]))

    def _ends(self) -> tuple[float, float]:
        return tuple(1 / (1 + math.exp(-(end - self.loc) / self.scale)) for end in (self.low, self.high))  # type: ignore[return-value]

    def at(self, u: Tensor) -> Tensor:
        """u in [0, 1] -> alpha, float64."""
        first, last = self._ends()
        return self.loc + self.scale * torch.logit(first + (last - first) * u.double())

    def weight(self, alpha: Tensor) -> Tensor:
        """1 / density."""
        first, last = self._ends()
        q = torch.sigmoid((alpha.double() - self.loc) / self.scale)
        return self.scale * (last - first) / (q * (1 - q))


@dataclass(frozen=True)
class Sampling:
    """How often and where a model is asked about one picture and one conditioning.

    nodes: K log-SNRs, even. noises: S draws at each. stratified: one log-SNR in each of K equally likely strata, else independent ones.
    antithetic: neighbouring strata share a draw with opposite signs. common: all conditionings see the same noise; without it the variance of
    differences is 30 times larger and the orthogonal estimator has no meaning, so it is there for measurements only. law: None for the model's own.

    Errors: ValueError."""

    nodes: int = 100
    noises: int = 1
    law: Law | None = None
    seed: int = 0
    stratified: bool = True
    antithetic: bool = True
    common: bool = True

    def __post_init__(self) -> None:
        if not (2 <= self.nodes <= MOST_NODES and self.nodes % 2 == 0 and 1 <= self.noises <= 4096):
            raise ValueError(
                f"A sampling has an even number of 2 to {MOST_NODES} nodes and 1 to 4096 noises at each, not {self.nodes} and {self.noises}."
            )

    def lawful(self, own: Law, trained: tuple[float, float]) -> Law:
        """The law it uses with a model, cut to the trained range. own: the model's."""
        return (self.law or own).within(trained)

    def alphas(self, law: Law) -> Tensor:
        """(K,) float64, rising if stratified."""
        u = torch.rand(self.nodes, generator=generator(self.seed, "alpha"), dtype=torch.float64)
        if self.stratified:
            u = (torch.arange(self.nodes, dtype=torch.float64) + u) / self.nodes
        return law.at(u)

    def order(self) -> list[int]:
        """All nodes, coarse to fine: pairs of neighbours in bit-reversed order, so that whatever has been done covers the range evenly."""
        pairs = self.nodes // 2
        bits = max(pairs - 1, 1).bit_length()
        reversed_ = (int(f"{n:0{bits}b}"[::-1], 2) for n in range(1 << bits))
        return [node for pair in reversed_ if pair < pairs for node in (2 * pair, 2 * pair + 1)]

    def noise(self, node: int, draw: int, shape: Sequence[int], key: str = "") -> Tensor:
        """The noise of one node and draw, float32, on the CPU: it depends on the seed and on nothing that is computed beside it."""
        source = node // 2 if self.antithetic else node
        drawn = torch.randn(
            tuple(shape), generator=generator(self.seed, "noise", source, draw, "" if self.common else key)
        )
        return -drawn if self.antithetic and node % 2 else drawn


def generator(*parts: object) -> torch.Generator:
    """A stream of its own for every name, the same everywhere."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
