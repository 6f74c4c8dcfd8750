"""A prototype classifier made in a second, with pictures that its prototypes come from, for tests of everything around it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fanlight.adapters.image_classifier import Preprocessing
from fanlight.adapters.prototype_classifier import Answers, TorchPrototypeClassifier
from fanlight_models.prototypes import bundle, quality, vit
from fanlight_models.prototypes.bundle import Nearest
from fanlight_models.prototypes.nearest import nearest
from fanlight_models.prototypes.projection import Source, project
from fanlight_models.prototypes.protovit import ProtoViT

CLASSES = ("ant", "bee", "cat", "dog")
MEAN, STD = 127.5, 64.0


@dataclass(frozen=True, eq=False)
class Small:
    """A projected model and what it was projected onto."""

    model: ProtoViT
    x: Tensor
    labels: Tensor
    pictures: dict[int, Any]
    sources: list[Source]
    nearest: Nearest
    used: Tensor

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        for at in range(0, len(self.x), 5):
            yield self.x[at : at + 5], self.labels[at : at + 5]


@functools.cache
def small(side: int = 32, classes: int = 3) -> Small:
    """A few classes of two prototypes, a grid of (side / 4)^2; random weights that differ enough for the matches to mean something. One part of
    prototype 1 and two of prototype 3 are left out, as slots do."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ProtoViT(vit.Shape(size=side, patch=4, width=16, depth=2, heads=2), classes, per_class=2)
        for p in model.features.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.3)
        model.head.prototype_vectors.data.normal_()
        model.head.patch_select.data[0, 1, 2] = -1.0
        model.head.patch_select.data[0, 3, :2] = -1.0
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (12, 4, 4, 3)).repeat(side // 4, 1).repeat(side // 4, 2)
    images = np.clip(coarse + rng.integers(-30, 30, coarse.shape), 0, 255).astype(np.uint8)
    x = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - MEAN) / STD
    labels = torch.arange(12) % classes

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for at in range(0, 12, 5):
            yield x[at : at + 5], labels[at : at + 5]

    sources = project(model, batches)
    found, used = nearest(model, batches, count=4)
    return Small(model.requires_grad_(False), x, labels, dict(enumerate(images)), sources, found, used)


def write(folder: Path, model: ProtoViT | None = None, side: int = 32, classes: int = 3) -> Path:
    """Its bundle."""
    made = small(side, classes)
    own = model or made.model
    bundle.write(
        folder,
        own,
        name="Small prototypes",
        description="Three classes of noise.",
        terms="Apache-2.0",
        classes=CLASSES[:classes],
        preprocessing={"size": [side, side], "mean": [MEAN] * 3, "std": [STD] * 3},
        card="# Small prototypes\n\nFor tests.\n",
        sources=made.sources,
        labels=made.labels.tolist(),
        pictures={i: made.pictures[i] for i in bundle.kept(made.sources, made.nearest)},
        names={i: f"training picture {i}" for i in made.pictures},
        nearest=made.nearest,
        quality=quality.summary(own, made.sources, made.nearest, made.used, made.labels),
        about={"split": "train"},
    )
    return folder


class Counted(TorchPrototypeClassifier):
    """A contract test counts passes here; what prototypes look at is counted in `asked`."""

    passes = 0


def classifier(side: int = 64, classes: int = 4) -> Counted:
    """As a model, without a folder: its pictures are in memory no more."""
    made = small(side, classes)
    held = bundle.Bundle(Path("nowhere"), made.model, made.sources, {}, made.nearest)
    size = Preprocessing((side, side), mean=(MEAN,) * 3, std=(STD,) * 3)
    answers = Answers(copy.deepcopy(made.model))
    return Counted(answers, classes=CLASSES[:classes], preprocessing=size, prefix_tokens=1, bundle=held)
