"""Weights drawn anew, on a copy of a network: what a network that has learned nothing is like.

Layers are redrawn from the top down. A layer that knows how to initialise itself does so (`reset_parameters`); other
parameters get normal numbers with the mean and the spread of the trained ones. Redrawn batch normalisation takes its
statistics from the picture, as at the beginning of training; with mean 0 and variance 1 the signal of a deep network
would fade to nothing, and every map with it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from fanlight.explainers.base import Step
from fanlight.quality.again import excused

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

SEVERAL = 1_000_000  # parameters that are redrawn in one step


class Copy:
    """A copy of a network whose layers can be redrawn; the network itself is only read.

    Args:
        network: an adapter with `net`, as `adapters.image_classifier.TorchImageClassifier`.
    """

    def __init__(self, network: Any):
        self._trained: dict[str, Tensor] = network.net.state_dict()
        with excused("The network cannot be copied"):
            self.network = copy.deepcopy(network)
        vars(self.network).pop("digest", None)  # it is another network from now on
        self.layers = [
            m for _, m in self.network.net.named_modules() if next(m.parameters(recurse=False), None) is not None
        ]

    def depths(self) -> list[int]:
        """How many layers, from the top, are redrawn each time: one, a third, two thirds, all."""
        n = len(self.layers)
        return sorted({min(n, max(1, d)) for d in (1, math.ceil(n / 3), math.ceil(2 * n / 3), n)})

    def redraw(self, depth: int, seed: int, x: Tensor, at: float, message: str) -> Generator[Step, None, None]:
        """Trained weights again, but for the top `depth` layers.

        Args:
            x: (3, H, W) the picture, for the statistics of batch normalisation.
            at: progress that is told meanwhile.
        """
        import torch

        self.network.net.load_state_dict(self._trained)
        pending = 0
        for n, layer in enumerate(self.layers[::-1][:depth]):
            with excused("Its weights cannot be drawn anew"), torch.random.fork_rng(), torch.no_grad():
                torch.manual_seed((seed << 16) + n)
                _redrawn(layer)
            pending += sum(p.numel() for p in layer.parameters(recurse=False))
            if pending >= SEVERAL:
                pending = 0
                yield Step(at, message)
        self._settle(self.layers[::-1][:depth], x)
        yield Step(at, message)

    def _settle(self, redrawn: list[nn.Module], x: Tensor) -> None:
        import torch
        from torch.nn.modules.batchnorm import _BatchNorm

        norms = [m for m in redrawn if isinstance(m, _BatchNorm) and m.track_running_stats]
        if not norms:
            return
        before = [m.momentum for m in norms]
        several = torch.stack([x, x.flip(1), x.flip(2), x.flip(1, 2)])  # one value per channel has no variance
        try:
            for m in norms:
                m.train()
                m.momentum = 1.0
            with excused("The network gave no answer"), torch.no_grad():
                self.network.logits(several)
        finally:
            for m, momentum in zip(norms, before, strict=True):
                m.eval()
                m.momentum = momentum


def _redrawn(layer: nn.Module) -> None:
    """In place, from the global generator."""
    reset = getattr(layer, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    for p in layer.parameters(recurse=False):
        p.copy_(_like(p))


def _like(p: Tensor) -> torch.Tensor:
    import torch

    mean, spread = float(p.mean()), float(p.std(correction=0))
    return mean + (spread or abs(mean)) * torch.randn_like(p)
