"""What tests of explainers and trust need: small models, inputs, the context of a run, and a way to run to the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.explainers.base import Item, Step, Target

T = TypeVar("T")
torch.set_num_threads(1)  # these networks are so small that sharing the work costs more than it saves
STRUCTURE = {"rectifiers", "rescale-rule", "relevance-rules"}
"""Capabilities that say what a network is made of, and nothing of how it is wrapped."""
CLASSES = ("ant", "bee", "cat", "dog", "elk")


class Counting(TorchImageClassifier):
    """A classifier that counts the passes it is asked for, a backward pass as one more."""

    passes = 0

    def logits(self, x: Tensor) -> Tensor:
        self.passes += len(x) * (2 if x.requires_grad else 1)
        return super().logits(x)


class Context:
    """The context of a run, with a plain dictionary for what is kept."""

    def __init__(self, chunk: int = 8):
        self.device, self.chunk = torch.device("cpu"), chunk
        self.kept: dict[Hashable, Any] = {}

    def reuse(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self.kept:
            self.kept[key] = compute()
        return self.kept[key]

    def remember(self, key: Hashable, value: Any) -> None:
        self.kept[key] = value

    def recall(self, key: Hashable) -> Any | None:
        return self.kept.get(key)


def classifier(net: nn.Module, classes: int, side: int = 32, features_at: str | None = None) -> Counting:
    """Model space is (pixel - 127.5) / 64."""
    small = Preprocessing((side, side), mean=(127.5,) * 3, std=(64.0,) * 3)
    names = [CLASSES[i] if i < len(CLASSES) else f"class {i}" for i in range(classes)]
    return Counting(net, classes=names, preprocessing=small, features_at=features_at)


def conv_net(seed: int = 0, side: int = 32, activation: type[nn.Module] = nn.ReLU) -> Counting:
    """Two convolutions, pooled, one linear layer, five classes; features after the second activation."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2, padding=2),
            activation(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1),
            activation(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(12, 5),
        )
        nn.init.normal_(net[6].weight, std=2.0)
    return classifier(net, 5, side, features_at="3")


class Linear(nn.Module):
    """Additive: class k is the sum of weight[k] * x over all pixels and channels."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight)  # (K, 3, H, W)

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bchw,kchw->bk", x, self.weight)


def linear(seed: int = 0, side: int = 32, classes: int = 3, scale: float = 0.05) -> Counting:
    weight = torch.from_numpy(np.random.default_rng(seed).normal(0, scale, (classes, 3, side, side)).astype(np.float32))
    return classifier(Linear(weight), classes, side)


def photo(seed: int = 0, side: int = 32) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Smooth random colours with some noise, (side, side, 3)."""
    rng = np.random.default_rng(seed)
    coarse = rng.random((4, 4, 3)).repeat(side // 4, 0).repeat(side // 4, 1)
    return np.asarray(255 * np.clip(0.8 * coarse + 0.2 * rng.random((side, side, 3)), 0, 1), dtype=np.uint8)


def item(model: TorchImageClassifier, picture: int = 0, target: Target | None = None, seed: int = 0) -> Item:
    """An input made from `photo(picture)`; the target defaults to the top prediction."""
    image = photo(picture, model.size[0])
    x = model.prepare(image)
    with torch.inference_mode():
        logits = TorchImageClassifier.logits(model, x[None])[0].clone()
    chosen = target or Target(int(logits.argmax()))
    return Item(x, image, chosen, logits, seed, model.view(image.shape[1], image.shape[0]), f"picture {picture}")


def finish(run: Generator[Step, None, T]) -> T:
    """Runs to the end and returns the result; progress must not go back or leave 0..1."""
    done = 0.0
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            return end.value
        assert done <= step.done <= 1
        done = step.done


def explained(explainer: Any, model: Any, items: Any, context: Context | None = None, **params: Any) -> Any:
    """The artifacts of the only item, or of each of a list of items."""
    several = isinstance(items, list)
    found = finish(
        explainer().run(model, items if several else [items], explainer.Params(**params), context or Context())
    )
    return found if several else found[0]


def naive(model: TorchImageClassifier, target: Target) -> Callable[[Tensor], Tensor]:
    """The target's value in float64 of one picture (3, H, W), asked alone: what naive twins are written against."""
    import copy

    net = copy.deepcopy(model.net).double()
    return lambda x: target.value(net(x[None].double()))[0]
