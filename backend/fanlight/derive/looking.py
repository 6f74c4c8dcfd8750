"""What the prototypes of a model find in a data set, once for all that a change computes from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fanlight.adapters import loader
from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier
from fanlight.derive.base import Array, Data, Labelled, Progress, places, readable
from fanlight.errors import BadRequest, InvalidField

ROWS = 32
MOST_NUMBERS = 500_000_000
"""Of tokens that are kept, 2 GB: 48,000 pictures of the field guide, 6,600 of a DeiT-S."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Of n readable pictures: activation (n, m), classes (n,) with -1 for none, tokens (n, N, D) where asked for, and why others are left out."""

    pictures: list[Labelled]
    activation: Tensor
    labels: Array
    tokens: Tensor | None
    problems: list[str]


def opened(bundle: Path) -> TorchPrototypeClassifier:
    """Errors: BadRequest where the model answers by no prototypes."""
    model = loader.load({"bundle": str(bundle)})
    if not isinstance(model, TorchPrototypeClassifier):
        raise BadRequest(
            f"“{model.name}” answers by no prototypes.", code="not_available", given=model.task, allowed="protovit"
        )
    return model


def origin_of(model: TorchPrototypeClassifier) -> dict[str, str]:
    """What a story says of the model that is changed. The digest is of the weights: ask before they change."""
    return {"name": model.name, "digest": model.digest}


def looked(
    model: TorchPrototypeClassifier, data: Data, classes: Sequence[str], tell: Progress, *, tokens: bool = False
) -> Seen:
    """Args: classes: what labels may name. Errors: no_labels, too_many_items."""
    shape = model.prototypes.features.shape
    numbers = len(data.pictures) * shape.grid[0] * shape.grid[1] * shape.width
    if tokens and numbers > MOST_NUMBERS:
        most = int(MOST_NUMBERS * len(data.pictures) / numbers)
        raise InvalidField(
            f"“{data.name}” has too many pictures to learn from at once.",
            code="too_many_items",
            given=len(data.pictures),
            allowed=[1, most],
        )
    problems: list[str] = []
    there: list[Labelled] = []
    found: list[Tensor] = []
    kept: list[Tensor] = []
    batch: list[Tensor] = []

    def flush() -> None:
        if not batch:
            return
        with torch.inference_mode():
            z = model.prototypes.features.tokens(torch.stack(batch))
            found.append(model.prototypes.head(z).activation.cpu())
        if tokens:
            kept.append(z.cpu())
        batch.clear()

    for picture, pixels in readable(data, problems):
        there.append(picture)
        batch.append(model.prepare(pixels))
        if len(batch) == ROWS:
            flush()
            n, of = len(there), len(data.pictures)
            tell(0.02 + 0.68 * n / of, f"looked at {n:,} of {of:,} pictures")
    flush()
    labels = places([p.label for p in there], classes)
    if not (labels >= 0).any():
        raise InvalidField(
            f"No picture of “{data.name}” has a label that is a class of “{model.name}”, so nothing says what the change does.",
            code="no_labels",
            given=sorted({p.label for p in there if p.label is not None})[:5],
            allowed=list(classes[:5]),
            hint="Give pictures in folders named by their class.",
        )
    every = torch.cat(kept).clone() if tokens else None  # no inference tensors: gradients pass by them
    return Seen(there, torch.cat(found).clone(), labels, every, problems)
