"""What the prototypes of the field guide are measured by, where every part of every bird is known, and the card that says it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fanlight_models.prototypes import quality
from fanlight_models.prototypes.bundle import Nearest
from fanlight_models.prototypes.projection import Source
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.training import Epoch
from fanlight_models.recipes.field_guide import prepared
from fanlight_models.worlds import fieldguide

BATCH = 50
ATTACKED = 96  # pairs of a picture and a prototype of its class


def measured(
    model: ProtoViT,
    sources: Sequence[Source],
    found: Nearest,
    used: Tensor,
    labels: Tensor,
    test: fieldguide.Arrays,
    count: int,
) -> dict[str, Any]:
    """Everything of `quality`, and the accuracy, on the first `count` scenes of the test split. Args: labels: of the training pictures."""
    cases = seen(test, count, model.features.shape.size)
    x, species = prepared(torch.from_numpy(test.images)), torch.from_numpy(test.species)
    sys.stderr.write("accuracy, consistency, stability\n")
    model.eval().requires_grad_(False)
    with torch.inference_mode():
        answers = torch.cat([model(case.x).logits for case in cases()])
    same = quality.consistency(model, cases)
    stable = quality.stability(model, cases)
    sys.stderr.write("sensitivity inside the boxes, attack outside of them\n")
    which = torch.linspace(0, len(x) - 1, min(ATTACKED, len(x))).long()
    with torch.inference_mode():
        active = torch.cat([model(some).activation for some in torch.split(x[which], BATCH)])
    mine = model.head.own == species[which][:, None]
    j = active.masked_fill(~mine, float("-inf")).argmax(1)  # the prototype of its class that it is explained by first
    shares = torch.cat([quality.inside(model, a, b) for a, b in _pairs(x[which], j)])
    moved = [quality.attack(model, a, b) for a, b in _pairs(x[which], j)]
    return {
        **quality.summary(model, sources, found, used, labels),
        "accuracy": float((answers.argmax(1) == species).double().mean()),
        "tested_on": len(x),
        "additivity": quality.additivity(model, x[:BATCH]),
        "consistency": same["patches"],
        "consistency_box": same["box"],
        "stability": stable["parts"],
        "token_stability": stable["tokens"],
        "inside_sensitivity": float(shares.mean()),
        "attacked": len(j),
        "place_change": float(torch.cat([m.place for m in moved]).mean()),
        "activation_change": float(torch.cat([m.activation for m in moved]).mean()),
        "rank_change": float(torch.cat([m.rank for m in moved]).double().mean()),
    }


def seen(test: fieldguide.Arrays, count: int, size: int) -> quality.Cases:
    """The first `count` scenes of the test split with the places of their parts. Args: test: the same scenes, at this size."""
    sys.stderr.write("key points of the test scenes\n")
    drawn = [fieldguide.draw(s, size) for s in fieldguide.split("test", count)]
    points = torch.from_numpy(np.array([d.points for d in drawn])).float()
    visible = torch.from_numpy(np.array([d.visible for d in drawn]))
    x, species = prepared(torch.from_numpy(test.images)), torch.from_numpy(test.species)

    def cases() -> Iterator[quality.Seen]:
        for at in range(0, len(x), BATCH):
            end = at + BATCH
            yield quality.Seen(x[at:end], species[at:end], points[at:end], visible[at:end])

    return cases


def _pairs(x: Tensor, j: Tensor, batch: int = 24) -> Iterator[tuple[Tensor, Tensor]]:
    for at in range(0, len(x), batch):
        yield x[at : at + batch], j[at : at + batch]


def text(history: Sequence[Epoch], measured: Mapping[str, Any], *, scenes: int, variant: str, seed: int) -> str:
    """The card."""
    told = {(e.stage, e.number): e.accuracy for e in history}

    def last(stage: str) -> float:
        return max(((e.number, e.accuracy) for e in history if e.stage == stage), default=(0, float("nan")))[1]

    m = measured
    moved = "far" if m["movement_mean"] > 0.3 else "little" if m["movement_mean"] < 0.1 else "some way"
    return CARD.format(
        scenes=scenes,
        variant=variant,
        seed=seed,
        linear=last("backbone"),
        joint=last("joint"),
        before=last("slots"),
        after=told.get(("projection", 1), float("nan")),
        ended=last("last"),
        moved=moved,
        open=sum(n * c for n, c in enumerate(m["open_parts"])) / max(sum(m["open_parts"]), 1),
        weak=len(m["weak_self"]),
        twins=len(m["duplicates"]),
        dead=len(m["dead"]),
        elsewhere=len(m["largest_weight_elsewhere"]),
        **{k: v for k, v in m.items() if not isinstance(v, list)},
    )


CARD = """# Field guide, prototypes

A ProtoViT that tells the 24 species of the field guide by prototypes of four parts: each is a place in a picture of the training split, and says
which.

- **Data**: {scenes} scenes drawn like the training split, of which prototypes come from the 6,000 of the split itself.
- **Training**: `python -m fanlight_models.recipes.field_guide_prototypes`, losses of the {variant}, seed {seed}; the transformer from scratch.
- **Accuracy**: {accuracy:.3f} on {tested_on} scenes of the test split. On validation: the same transformer with a linear head on its class token,
  before there were prototypes, {linear:.3f}; prototypes before projection {before:.3f}, after it {after:.3f}, at the end {ended:.3f}.
- **Use**: to see what prototypes show where the truth is known. It knows nothing of real birds.
- **Terms**: Apache-2.0; no data of others.

## How good its prototypes are

| what | figure |
|---|---|
| points against the logit | off by {additivity:.1e} of the largest logit at most |
| movement at projection, 1 - cos | {movement_mean:.2f} on average, {movement_most:.2f} at most |
| activation on its own source | {self_activation_least:.2f} of {parts} at least; {weak} of {prototypes} below 0.99 of it |
| the same parts as another prototype | {twins} |
| among the most active of no training picture | {dead} |
| parts that are open | {open:.2f} of {parts} on average |
| largest weight for another class | {elsewhere} |
| nearest training pictures of its own class | {purity_mean:.2f} of ten |
| consistency: meeting one and the same part in 80 % of the pictures | {consistency:.2f} by patches, {consistency_box:.2f} by a fixed box |
| stability: meets exactly the same parts under noise | {stability:.2f}; the same patches {token_stability:.2f} |
| sensitivity inside the boxes | {inside_sensitivity:.2f} of the gradient's magnitude |
| activation lost to an attack outside the boxes | {activation_change:.0f} % |
| place moved by it | {place_change:.0f} % |
| prototypes of other classes that overtake | {rank_change:.1f} |

They moved {moved} at projection: where that is far, a source shows what a prototype was replaced by, not what it was trained to mean.
A share of {inside_sensitivity:.2f} inside the boxes means that the rest of what could change the similarity lies outside of what is shown:
a token of a transformer knows the whole picture. The attack is on {attacked} pairs of a picture and its first prototype, by the signed
gradient of the activation itself, 50 steps of 0.01 and 0.4 at most in model space.
"""
