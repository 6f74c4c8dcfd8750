"""A backbone that needs no training: the cells of EfficientNet-Lite0's last map as tokens, for photographs on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fanlight_models.efficientnet_lite import STAGES, EfficientNetLite0
from fanlight_models.prototypes import vit

KIND = "efficientnet-lite0"
SHAPE = vit.Shape(KIND, size=224, patch=32, width=STAGES[-1][4], depth=0, heads=1)


class Cells(nn.Module):
    """(B, 3, H, W), values (pixel - 127) / 128 -> the mean cell (B, 320) and the cells (B, 49, 320), of the last block, before what
    widens them for the classifier. The mean takes the place of a transformer's class token [OWN]: what every cell of a picture has is not of a place.

    A cell sees far more than its 32 pixels, as a token of a transformer does.
    """

    def __init__(self, shape: vit.Shape = SHAPE):
        super().__init__()
        if shape != SHAPE:
            raise ValueError(f"The backbone “{KIND}” has one shape: {SHAPE}.")
        self.shape = shape
        net = EfficientNetLite0(classes=2)
        self.stem, self.blocks = net.stem, net.blocks

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        cells = self.blocks(F.relu6(self.stem(x))).flatten(2).transpose(1, 2)
        return cells.mean(1), cells

    def tokens(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, 49, 320): each cell less the mean cell."""
        whole, cells = self(x)
        difference: Tensor = cells - whole[:, None]
        return difference


class Kept(nn.Module):
    """Stands in for a frozen backbone while the head is trained: what it is given are tokens (B, N, D), computed once."""

    def __init__(self, shape: vit.Shape = SHAPE):
        super().__init__()
        self.shape = shape

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(x), self.shape.width), x

    def tokens(self, x: Tensor) -> Tensor:
        return x
