"""Small worlds whose information is known, and a quadrature that needs no chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fanlight_models.diffusion import heads
from fanlight_models.diffusion.channel import Law, noised
from fanlight_models.diffusion.mixture import Mixture
from fanlight_models.diffusion.protocol import Denoiser, Encoded
from fanlight_models.diffusion.words import Conditioning

SIGNS = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
WORDS = {"a": SIGNS[:, 0] > 0, "b": SIGNS[:, 1] > 0}


def said(*texts: str) -> list[Conditioning]:
    return [Conditioning(t) for t in texts]


def sum_of_two() -> Mixture:
    """T1: x = a + b + 0.5 n."""
    return Mixture(SIGNS.sum(1)[:, None, None, None], 0.5, WORDS)


def five_pixels(dtype: torch.dtype = torch.float64) -> Mixture:
    """T3: pixels a, b, OR (0 or 1), XOR (product) and background, noise 0.5."""
    a, b = SIGNS.T
    means = torch.stack([a, b, ((a > 0) | (b > 0)).to(a), a * b, torch.zeros_like(a)], 1)
    return Mixture(means[:, None, None, :].to(dtype), 0.5, WORDS)


class Linear:
    """T2: x = A + B + n, variances 1, 1, 0.25; words say A = 1 and B = 0.75. Its network has any head."""

    shape, logsnr, law, device = (1, 1, 1), (-40.0, 40.0), Law(), torch.device("cpu")

    def __init__(self, head: str = "epsilon"):
        self.head = head

    def lost(self, text: str) -> str:
        return ""

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        given = [("A" in p.text, "B" in p.text) for p in prompts]
        mean = torch.tensor([1.0 * a + 0.75 * b for a, b in given], dtype=torch.float64)
        return {"mean": mean, "variance": torch.tensor([2.25 - a - b for a, b in given], dtype=torch.float64)}

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        g = torch.sigmoid(alpha).view(-1, 1, 1, 1)
        mean, variance = (encoded[k].view(-1, 1, 1, 1) for k in ("mean", "variance"))
        exact = (1 - g).sqrt() / (g * variance + 1 - g) * (z - g.sqrt() * mean)
        out = heads.output_of(self.head, heads.picture_of(exact, z, alpha), exact, alpha)
        return heads.noise_of(self.head, out, z, alpha)


def quadrature(
    model: Denoiser,
    x: float,
    base: str,
    full: str,
    span: tuple[float, float] = (-10.0, 12.0),
    nodes: int = 2201,
    hermite: int = 160,
) -> tuple[float, float]:
    """Signed and orthogonal information of a picture of one pixel: trapezoid over log-SNR, Gauss-Hermite over noise."""
    points, weights = np.polynomial.hermite_e.hermegauss(hermite)
    keep = weights > 1e-30
    noise = torch.from_numpy(points[keep])
    weight = torch.from_numpy(weights[keep] / math.sqrt(2 * math.pi))
    alphas = torch.linspace(*span, nodes, dtype=torch.float64)
    encoded = [model.encode(said(text)) for text in (base, full)]
    alpha = alphas.repeat_interleave(len(noise))
    eps = noise.repeat(nodes).view(-1, 1, 1, 1)
    z = noised(torch.full_like(eps, x), eps, alpha)
    less, more = (model.noise(z, alpha, {k: v.expand(len(z), *v.shape[1:]) for k, v in e.items()}) for e in encoded)
    every = ((eps - less) ** 2 - (eps - more) ** 2, (less - more) ** 2)
    signed, orthogonal = (float(torch.trapezoid((t.flatten().view(nodes, -1) @ weight) / 2, alphas)) for t in every)
    return signed, orthogonal
