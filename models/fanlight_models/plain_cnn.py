"""A plain convolutional classifier: convolutions and ReLU modules in one chain, each used once. Nothing in it is hard for a method of explanation:
no normalisation at inference, no residual sums, no functional activations."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class PlainCNN(nn.Module):
    """(B, 3, H, W) -> (B, classes) logits; H and W at least 2 ** len(widths).

    Args:
        widths: channels of the stages; each halves the grid with its first convolution.
        depth: convolutions per stage.
        classes: number of logits.
        norm: with batch normalisation after each convolution, as it is trained; `folded` gives the same network without.
    """

    def __init__(
        self, widths: Sequence[int] = (32, 64, 128, 192), depth: int = 2, classes: int = 24, norm: bool = False
    ):
        super().__init__()
        if not widths or min(widths) < 1 or depth < 1 or classes < 2:
            raise ValueError("widths and depth are at least 1, classes at least 2")
        layers: list[nn.Module] = []
        channels = 3
        for width in widths:
            for n in range(depth):
                layers.append(nn.Conv2d(channels, width, 3, stride=2 if n == 0 else 1, padding=1, bias=not norm))
                if norm:
                    layers.append(nn.BatchNorm2d(width))
                layers.append(nn.ReLU())
                channels = width
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.classifier(self.flatten(self.pool(self.features(x))))
        return out


def folded(trained: PlainCNN, widths: Sequence[int], depth: int, classes: int) -> PlainCNN:
    """The network without batch normalisation that computes what `trained` computes in eval mode."""
    plain = PlainCNN(widths, depth, classes)
    convolutions = [m for m in plain.features if isinstance(m, nn.Conv2d)]
    pairs = list(trained.features)
    for n, conv in enumerate(convolutions):
        old, norm = pairs[3 * n], pairs[3 * n + 1]
        assert isinstance(old, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
        assert norm.running_mean is not None and norm.running_var is not None and conv.bias is not None
        scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
        conv.weight.data = (old.weight.double() * scale[:, None, None, None]).float()
        conv.bias.data = (norm.bias.double() - norm.running_mean.double() * scale).float()
    plain.classifier.load_state_dict(trained.classifier.state_dict())
    return plain.eval().requires_grad_(False)
