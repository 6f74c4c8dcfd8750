"""A prototype classifier of a published size for `fanlight bench prototypes`: 2,000 prototypes, 200 classes, a DeiT-Tiny, projected onto noise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fanlight_models.prototypes import bundle, vit
from fanlight_models.prototypes.bundle import Nearest
from fanlight_models.prototypes.projection import project
from fanlight_models.prototypes.protovit import ProtoViT

SIDE, MEAN, STD = 224, 127.5, 64.0


def write(folder: Path, classes: int = 200, per_class: int = 10) -> Path:
    """Its bundle: random weights, one picture a class. What is timed does not depend on what it has learned."""
    torch.manual_seed(0)
    model = ProtoViT(vit.PUBLISHED["deit_tiny_patch16_224"], classes, per_class=per_class)
    for p in model.features.parameters():
        if p.ndim > 1:
            nn.init.normal_(p, std=0.1)
    model.head.prototype_vectors.data.normal_()
    model.head.patch_select.data[0, ::3, 3] = -1.0  # a third of the prototypes have lost a part
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (classes, 7, 7, 3), dtype=np.uint8).repeat(SIDE // 7, 1).repeat(SIDE // 7, 2)
    labels = torch.arange(classes)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for at in range(0, classes, 20):
            x = torch.from_numpy(images[at : at + 20]).permute(0, 3, 1, 2).float()
            yield (x - MEAN) / STD, labels[at : at + 20]

    sources = project(model, batches)
    near = torch.stack([labels[(model.head.own + n) % classes] for n in range(4)], 1)
    count, parts = model.head.patch_select.shape[1:]
    bundle.write(
        folder,
        model,
        name="Two thousand prototypes",
        description="Random weights, for benchmarks.",
        terms="none",
        classes=[f"class {c:03d}" for c in range(classes)],
        preprocessing={"size": [SIDE, SIDE], "mean": [MEAN] * 3, "std": [STD] * 3},
        card="Random weights, for benchmarks.\n",
        sources=sources,
        labels=labels.tolist(),
        pictures=dict(enumerate(images)),
        names={c: f"noise {c}" for c in range(classes)},
        nearest=Nearest(near, torch.ones(count, 4), torch.zeros(count, 4, parts, dtype=torch.int64)),
        quality={},
        about={"split": "noise"},
    )
    return folder
