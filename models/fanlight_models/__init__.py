"""Networks in plain torch, and how their published weights are converted. Knows nothing of Fanlight; importing it
imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


def _efficientnet_lite0(**config: Any) -> nn.Module:
    from fanlight_models.efficientnet_lite import EfficientNetLite0

    return EfficientNetLite0(**config)


def _plain_cnn(**config: Any) -> nn.Module:
    from fanlight_models.plain_cnn import PlainCNN

    return PlainCNN(**config)


ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "efficientnet-lite0": _efficientnet_lite0,
    "plain-cnn": _plain_cnn,
}
"""The architectures that a bundle may name; nothing else is ever built from a bundle."""
