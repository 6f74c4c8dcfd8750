"""EfficientNet-Lite0: the EfficientNet-B0 of Tan & Le (ICML 2019) as Google released it for edge devices in 2020,
without squeeze-excitation and with ReLU6 in place of swish.

Batch normalisation is folded into the convolutions, because the network is only ever read: at inference both are one
affine map (`convert.py` folds the published weights). Padding is TensorFlow's SAME: where the stride leaves a
remainder, right and bottom get more.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

# kernel, stride, expansion, channels in, channels out, repeats
STAGES = (
    (3, 1, 1, 32, 16, 1),
    (3, 2, 6, 16, 24, 2),
    (5, 2, 6, 24, 40, 2),
    (3, 2, 6, 40, 80, 3),
    (5, 1, 6, 80, 112, 3),
    (5, 2, 6, 112, 192, 4),
    (3, 1, 6, 192, 320, 1),
)
WIDTH = 1280


def same_padding(n: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after a line of n pixels so that ceil(n / stride) outputs result."""
    total = max((-(-n // stride) - 1) * stride + kernel - n, 0)
    return total // 2, total - total // 2


class Conv(nn.Conv2d):
    """Convolution with SAME padding and a bias, (B, C, H, W) -> (B, D, ceil(H/s), ceil(W/s))."""

    def forward(self, input: Tensor) -> Tensor:
        top, bottom = same_padding(input.shape[-2], self.kernel_size[0], self.stride[0])
        left, right = same_padding(input.shape[-1], self.kernel_size[1], self.stride[1])
        if (top, left) == (bottom, right):
            return F.conv2d(input, self.weight, self.bias, self.stride, (top, left), groups=self.groups)
        return F.conv2d(
            F.pad(input, (left, right, top, bottom)), self.weight, self.bias, self.stride, groups=self.groups
        )


class InvertedBottleneck(nn.Module):
    """Widen, convolve each channel alone, narrow; the input is added where the shape allows (MobileNetV2, Sandler et
    al. 2018)."""

    def __init__(self, kernel: int, stride: int, expansion: int, inputs: int, outputs: int):
        super().__init__()
        width = inputs * expansion
        self.expand = Conv(inputs, width, 1) if expansion > 1 else None
        self.depthwise = Conv(width, width, kernel, stride, groups=width)
        self.project = Conv(width, outputs, 1)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.expand is None else F.relu6(self.expand(x))
        narrow: Tensor = self.project(F.relu6(self.depthwise(wide)))
        return narrow + x if self.residual else narrow


class EfficientNetLite0(nn.Module):
    """Logits of an RGB picture, (B, 3, H, W) with values (pixel - 127) / 128 -> (B, classes); published for 224 x 224.

    Args:
        classes: outputs of the last linear layer.
    """

    def __init__(self, classes: int = 1000):
        super().__init__()
        self.stem = Conv(3, 32, 3, 2)
        self.blocks = nn.Sequential(
            *(
                InvertedBottleneck(kernel, stride if i == 0 else 1, expansion, inputs if i == 0 else outputs, outputs)
                for kernel, stride, expansion, inputs, outputs, repeats in STAGES
                for i in range(repeats)
            )
        )
        self.head = nn.Sequential(Conv(STAGES[-1][4], WIDTH, 1), nn.ReLU6())
        self.classifier = nn.Linear(WIDTH, classes)

    def features(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, 1280, H/32, W/32), after the last activation and before pooling."""
        grid: Tensor = self.head(self.blocks(F.relu6(self.stem(x))))
        return grid

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(x).mean((2, 3)))
        return logits
