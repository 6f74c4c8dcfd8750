"""From an input to the features that concepts are read from, (B, ...) -> (B, F). `width` is F."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fanlight_models.efficientnet_lite import WIDTH as LITE, EfficientNetLite0
from fanlight_models.plain_cnn import PlainCNN


class Encoder(nn.Module):
    """A chain of layers with `width` outputs."""

    def __init__(self, layers: nn.Sequential, width: int):
        super().__init__()
        self.layers = layers
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def features(inputs: int, hidden: int = 0) -> Encoder:
    """Frozen features (B, inputs) as they are, or after one linear layer and ReLU."""
    if hidden:
        return Encoder(nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU()), hidden)
    return Encoder(nn.Sequential(nn.Identity()), inputs)


def fcnn(inputs: int = 1500, width: int = 256, dropout: float = 0.05) -> Encoder:
    """Three fully connected layers, each normalised after dropout and ReLU: the encoder of the synthetic data."""
    layers: list[nn.Module] = []
    for n in (inputs, width, width):
        layers += [nn.Linear(n, width), nn.ReLU(), nn.Dropout(dropout), nn.BatchNorm1d(width)]
    return Encoder(nn.Sequential(*layers), width)


def small_cnn(size: Sequence[int] = (32, 32), width: int = 256, dropout: float = 0.25) -> Encoder:
    """Two 5 x 5 convolutions of stride 3, pooling, one fully connected layer: the encoder of the CIFAR experiments."""
    trunk = nn.Sequential(
        nn.Conv2d(3, 32, 5, 3), nn.ReLU(), nn.Conv2d(32, 64, 5, 3), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True), nn.Dropout(dropout), nn.Flatten(),
    )  # fmt: skip
    rows, columns = size
    for kernel, stride in ((5, 3), (5, 3)):
        rows, columns = (rows - kernel) // stride + 1, (columns - kernel) // stride + 1
    rows, columns = -(-rows // 2), -(-columns // 2)
    if min(rows, columns) < 1:
        raise ValueError(f"A picture of {tuple(size)} is too small for this encoder; 14 x 14 is the least.")
    return Encoder(nn.Sequential(*trunk, nn.Linear(64 * rows * columns, width), nn.ReLU()), width)


class PlainTrunk(nn.Module):
    """The convolutions of `PlainCNN`, its grid pooled by mean and by maximum, one linear layer: (B, 3, H, W) -> (B, width)."""

    def __init__(self, widths: Sequence[int] = (32, 64, 128, 192), depth: int = 2, width: int = 256):
        super().__init__()
        self.features = PlainCNN(widths, depth).features
        self.hidden = nn.Linear(2 * widths[-1], width)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        grid = self.features(x)
        return torch.relu(self.hidden(torch.cat([grid.mean((2, 3)), grid.amax((2, 3))], 1)))


class LiteTrunk(nn.Module):
    """EfficientNet-Lite0 without its classifier, pooled by mean, one linear layer with ReLU: (B, 3, H, W) -> (B, width). The trunk is frozen."""

    def __init__(self, width: int = 256):
        super().__init__()
        net = EfficientNetLite0(classes=2)
        self.stem, self.blocks, self.top = net.stem, net.blocks, net.head
        for part in (self.stem, self.blocks, self.top):
            part.requires_grad_(False)
        self.hidden = nn.Linear(LITE, width)
        self.width = width

    def pooled(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, 1280), what the linear layer sees."""
        grid: Tensor = self.top(self.blocks(F.relu6(self.stem(x))))
        return grid.mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.hidden(self.pooled(x)))


ENCODERS: dict[str, Callable[..., Any]] = {
    "features": features,
    "fcnn": fcnn,
    "small-cnn": small_cnn,
    "plain-cnn": PlainTrunk,
    "efficientnet-lite0": LiteTrunk,
}
"""The encoders that a configuration may name."""
