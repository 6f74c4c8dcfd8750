"""What networks predict, as the noise of the variance-preserving channel: noise, velocity, picture, or the velocity of flow matching.

z (B, C, h, w) is of the variance-preserving channel, alpha (B,) its log-SNR. `flow`: z' = (1 - s) x + s eps, u = eps - x, s in (0, 1); it is
the same channel up to a factor, at s = 1 / (1 + exp(alpha / 2)).
"""

from __future__ import annotations

import torch
from torch import Tensor

from fanlight_models.diffusion.channel import shares

HEADS = ("epsilon", "v_prediction", "sample", "flow")


def noise_of(head: str, out: Tensor, z: Tensor, alpha: Tensor) -> Tensor:
    """A network's output as its prediction of the noise. Errors: ValueError for an unknown head."""
    signal, rest = shares(alpha.to(z))
    if head == "epsilon":
        return out
    if head == "v_prediction":  # v = sqrt(g) eps - sqrt(1 - g) x
        return signal * out + rest * z
    if head == "sample":
        return (z - signal * out) / rest
    if head == "flow":
        mixed, s = flow_input(z, alpha)
        return mixed + (1 - s)[:, None, None, None] * out
    raise ValueError(f"“{head}” is no prediction type that is known. Known: {', '.join(HEADS)}.")


def output_of(head: str, x: Tensor, noise: Tensor, alpha: Tensor) -> Tensor:
    """What a perfect network with this head would put out where x and noise are known: what it is trained on."""
    signal, rest = shares(alpha.to(x))
    every = {"epsilon": noise, "v_prediction": signal * noise - rest * x, "sample": x, "flow": noise - x}
    if head not in every:
        raise ValueError(f"“{head}” is no prediction type that is known. Known: {', '.join(HEADS)}.")
    return every[head]


def picture_of(noise: Tensor, z: Tensor, alpha: Tensor) -> Tensor:
    """The picture that a prediction of the noise means."""
    signal, rest = shares(alpha.to(z))
    return (z - rest * noise) / signal


def flow_time(alpha: Tensor) -> Tensor:
    """s of flow matching at a log-SNR: alpha = 2 log((1 - s) / s)."""
    return torch.sigmoid(-alpha / 2)


def flow_input(z: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """z as a flow-matching network wants it, and its s (B,)."""
    s = flow_time(alpha.to(z))
    return z * ((1 - s) ** 2 + s**2).sqrt()[:, None, None, None], s
