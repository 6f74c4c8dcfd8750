"""Projection: every prototype becomes tokens of one training picture, and says which (ProtoViT, section 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fanlight_models.prototypes.protovit import ProtoViT

Batches = Callable[[], Iterator[tuple[Tensor, Tensor]]]
"""Gives the un-augmented training pictures in a fixed order: (B, 3, H, W) in model space, and their classes (B,)."""
WEAK = 0.99  # of K: a prototype that is less active on its own source has lost its walk to a tie


@dataclass(frozen=True)
class Source:
    """Where a prototype comes from.

    Args:
        image: index of the training picture; None where its class has none.
        token, order: per part; None of a part that is left out.
        cosine: per part, between the part before projection and its token.
        movement: 1 - mean cosine: how far projection moved it.
        self_activation: activation on its own source afterwards, at most K. Ties may make it less (docs/prototypes.md).
        duplicate_of: a lower prototype of its class with the same picture and tokens.
    """

    image: int | None
    token: list[int | None]
    order: list[int | None]
    cosine: list[float | None]
    movement: float | None
    self_activation: float
    duplicate_of: int | None = None


def project(model: ProtoViT, batches: Batches) -> list[Source]:
    """Rounds the gates, replaces the vectors of all parts that are kept by raw tokens of the picture of their class with the highest
    activation, and those of the others by 0. Changes the model; returns a `Source` for each prototype."""
    head = model.head
    head.round_gates()
    model.eval()
    with torch.no_grad():
        best = torch.full((len(head.own),), float("-inf"))
        image = torch.full((len(head.own),), -1)
        token, order = (torch.zeros(head.patch_select.shape[1:], dtype=torch.int64) for _ in range(2))
        cosine = torch.zeros(head.patch_select.shape[1:])
        vectors = torch.zeros_like(head.prototype_vectors)
        seen = 0
        for x, classes in batches():
            z = model.features.tokens(x)
            found = head(z)
            theirs = found.activation.masked_fill(classes[:, None] != head.own, float("-inf"))
            value, at = theirs.max(0)
            j = (value > best).nonzero()[:, 0]
            at = at[j]
            best[j], image[j] = value[j], seen + at
            token[j], order[j], cosine[j] = found.token[at, j], found.order[at, j], found.similarity[at, j]
            vectors[j] = z[at[:, None], token[j]].transpose(1, 2)
            seen += len(x)
        kept = head.gate == 1
        head.prototype_vectors.copy_(vectors * kept[:, None])
        active = _on_own(model, batches, image)
    return _sources(kept, image, token, order, cosine, active, head.own)


def _on_own(model: ProtoViT, batches: Batches, image: Tensor) -> Tensor:
    """(m,) activation of each prototype on its own source; 0 without one."""
    active = torch.zeros(len(image))
    seen = 0
    for x, _ in batches():
        inside = ((image >= seen) & (image < seen + len(x))).nonzero()[:, 0]
        if len(inside):
            wanted, at = torch.unique(image[inside] - seen, return_inverse=True)
            active[inside] = model(x[wanted]).activation[at, inside]
        seen += len(x)
    return active


def _sources(
    kept: Tensor, image: Tensor, token: Tensor, order: Tensor, cosine: Tensor, active: Tensor, own: Tensor
) -> list[Source]:
    made: list[Source] = []
    known: dict[tuple[object, ...], int] = {}
    for j in range(len(image)):
        there = int(image[j]) >= 0
        use = [bool(k) and there for k in kept[j]]
        tokens = [int(t) if u else None for t, u in zip(token[j], use, strict=True)]
        cosines = [float(c) if u else None for c, u in zip(cosine[j], use, strict=True)]
        counted = [c for c in cosines if c is not None]
        twin = known.setdefault((int(own[j]), int(image[j]), tuple(tokens)), j) if there else j
        made.append(
            Source(
                image=int(image[j]) if there else None,
                token=tokens,
                order=[int(o) if u else None for o, u in zip(order[j], use, strict=True)],
                cosine=cosines,
                movement=1 - sum(counted) / len(counted) if counted else None,
                self_activation=float(active[j]),
                duplicate_of=twin if twin != j else None,
            )
        )
    return made
