"""A small concept bottleneck over pictures, for tests: five concepts, four classes, numbers that a seed decides."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fanlight.adapters.concept_bottleneck import ConceptClassifier
from fanlight.adapters.image_classifier import Preprocessing
from fanlight_models.concepts import build
from fanlight_models.concepts.encoders import PlainTrunk

CONCEPTS = ("crest::none", "crest::long", "bill::hooked", "bill::straight", "spotted")
CLASSES = ("finch", "heron", "kestrel", "wren")


class Counted(ConceptClassifier):
    """A contract test counts passes here; reading a picture counts in `asked`."""

    passes = 0


def network(kind: str = "scbm", seed: int = 0, **config: Any) -> Any:
    """A bottleneck in eval mode whose concepts are correlated and whose head has an opinion."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = {"kind": "plain-cnn", "widths": [4, 6], "depth": 1, "width": 8}
        model = build({"kind": kind, "concepts": 5, "classes": 4, "encoder": encoder, **config})
        assert isinstance(model.encoder, PlainTrunk)
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.8)
        if kind == "scbm":
            nn.init.normal_(model.spread.linear.bias, std=0.8)  # else hardly anything correlates
    return model.eval().requires_grad_(False)


def bottleneck(side: int = 64, kind: str = "scbm", seed: int = 0, **config: Any) -> Counted:
    chance = torch.Generator().manual_seed(seed)
    return Counted.of(
        network(kind, seed, **config),
        concepts=CONCEPTS,
        classes=CLASSES,
        preprocessing=Preprocessing((side, side), mean=(127.5,) * 3, std=(64.0,) * 3),
        cases=torch.rand(40, 5, generator=chance, dtype=torch.float64),
        labels=torch.randint(0, 4, (40,), generator=chance),
    )
