"""A few prototypes learnt again while everything else stays; a further class; what is forbidden is looked at no more."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.prototypes import relearn
from fanlight_models.prototypes.head import Head

GRID, WIDTH, PARTS = (4, 4), 8, 2
KINDS = F.normalize(torch.eye(WIDTH) + 0.05, dim=-1)
"""What tokens can be: kind c is the sign of class c; kind 4 is a second one of class 1; kinds 5 to 7 are background."""


def tokens(labels: Tensor, seed: int, also: int | None = None) -> Tensor:
    """(n, 16, 8): background noise, and on two neighbouring places the kind of the class (of class 1 `also` on two others)."""
    chance = torch.Generator().manual_seed(seed)
    z = KINDS[torch.randint(5, 8, (len(labels), 16), generator=chance)]
    z = z + 0.1 * torch.randn(z.shape, generator=chance)
    for row, c in zip(z, labels.tolist(), strict=True):
        row[[5, 6]] = KINDS[c] + 0.02 * torch.randn(2, WIDTH, generator=chance)
        if also is not None and c == 1:
            row[[9, 10]] = KINDS[also] + 0.02 * torch.randn(2, WIDTH, generator=chance)
    return z


def head(classes: int) -> Head:
    """One prototype a class, at the sign of its class; projected."""
    made = Head(WIDTH, classes, GRID, per_class=1, parts=PARTS)
    with torch.no_grad():
        for c in range(classes):
            made.prototype_vectors[c] = KINDS[c][:, None].expand(WIDTH, PARTS)
        made.patch_select.fill_(200.0)
    return made.eval()


def right(model: Head, z: Tensor, labels: Tensor) -> float:
    return float((model(z).logits.argmax(1) == labels).float().mean())


def test_a_further_class_is_told_apart_and_nothing_else_moves() -> None:
    labels = torch.arange(60) % 4
    z, unseen = tokens(labels, 1), tokens(labels, 2)
    model = head(4)
    with torch.no_grad():
        model.prototype_vectors[3] = torch.rand(WIDTH, PARTS)
    before = copy.deepcopy(model)
    relearn.begin(model, [3], z[labels == 3], z[labels != 3])
    free = torch.zeros(4, 4, dtype=torch.bool)
    free[3], free[:, 3] = True, True
    held = torch.cat([relearn.activations(model, [0, 1, 2], z), torch.zeros(60, 1)], 1)
    sources = relearn.learn(model, [3], free, relearn.Pictures(z, labels, held))
    assert right(model, unseen, labels) > 0.95
    assert torch.equal(model.prototype_vectors[:3], before.prototype_vectors[:3])
    assert torch.equal(model.last_layer.weight[:3, :3], before.last_layer.weight[:3, :3])
    (source,) = sources
    assert labels[source.image] == 3 and sorted(source.token) == [5, 6], "it sits on the sign of its class"  # type: ignore[arg-type,type-var]
    where = z[source.image, source.token].T  # type: ignore[index]
    assert torch.equal(model.prototype_vectors[3], where), "bit-equal to its source"


def test_what_is_forgotten_looks_at_something_else() -> None:
    """Class 1 has two signs; its prototype looks at one, is told to forget it, and finds the other."""
    labels = torch.arange(60) % 3
    z, unseen = tokens(labels, 1, also=4), tokens(labels, 2, also=4)
    model = head(3)
    free = torch.zeros(3, 3, dtype=torch.bool)
    free[:, 1] = True
    held = model(z).activation.detach()
    forbidden = model.parts()[1].detach()
    allowed = relearn.without(z[labels == 1], forbidden)
    assert bool((allowed[:, [5, 6]] == 0).all()) and bool((allowed[:, [9, 10]] != 0).any(-1).all())
    relearn.begin(model, [1], allowed, z[labels != 1])
    (source,) = relearn.learn(model, [1], free, relearn.Pictures(z, labels, held), forbidden)
    assert sorted(source.token) == [9, 10] and labels[source.image] == 1  # type: ignore[type-var]
    assert float((model.parts()[1].detach() @ F.normalize(KINDS[1], dim=0)).max()) < 0.5
    assert right(model, unseen, labels) > 0.95
    found = model(unseen[labels == 1])
    assert set(found.token[:, 1].flatten().tolist()) <= {9, 10}


def test_the_same_seed_learns_the_same() -> None:
    labels = torch.arange(30) % 3
    z = tokens(labels, 1)
    made = []
    for _ in range(2):
        model = head(3)
        free = torch.ones(3, 3, dtype=torch.bool)
        relearn.learn(model, [2], free, relearn.Pictures(z, labels, model(z).activation.detach()), seed=7)
        made.append(model.state_dict())
    assert all(torch.equal(v, made[1][k]) for k, v in made[0].items())


def test_a_class_without_pictures_is_refused() -> None:
    labels = torch.zeros(10, dtype=torch.int64)
    z, model = tokens(labels, 1), head(3)
    with pytest.raises(ValueError, match="Class 2 has no picture"):
        relearn.learn(model, [2], torch.ones(3, 3, dtype=torch.bool), relearn.Pictures(z, labels, model(z).activation))
