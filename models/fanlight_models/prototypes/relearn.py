"""Learning a few prototypes of a trained model again, or further ones, while everything else stays: backbone, other prototypes, their weights.

Because the backbone stays, the others keep their activations and their training pictures. Serves two changes:

- a further class: its prototypes begin at tokens of its pictures;
- forgetting: a prototype is learnt anew, away from what it was made of. As in ProtoPDebug (Bontempelli et al., ICLR 2023), whose loss term raises the
  distance to forbidden patches; beside that, tokens like them are taken out of the pictures that it learns from [OWN].

The losses are those of the joint stage that concern these prototypes: cross-entropy, cluster, separation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fanlight_models.prototypes import losses, matching
from fanlight_models.prototypes.head import ROUNDED, Head, activation
from fanlight_models.prototypes.projection import Source, project

STEPS, BATCH = 300, 64
RATE, WEIGHT_RATE = 3e-3, 1e-2
ALIKE = 0.9
"""Cosine from which a token counts as one of the forbidden ones [OWN]."""
AWAY = 1.0
"""Weight of the term that leads away from forbidden tokens [OWN]; ProtoPDebug's own is of another similarity."""
LLOYD, CENTRES = 20, 4


@dataclass(frozen=True, eq=False)
class Pictures:
    """What is learnt from: tokens (n, N, D), classes (n,), and activations (n, m) of all prototypes of the model, those to learn included."""

    tokens: Tensor
    labels: Tensor
    activation: Tensor


def learn(
    head: Head, few: Sequence[int], free: Tensor, pictures: Pictures, forbidden: Tensor | None = None, *, seed: int = 0
) -> list[Source]:
    """Learns the prototypes `few` of `head`, projects them and fits the weights that may move; changes the head. Other prototypes are untouched.

    Args:
        free: (C, m) bool, weights that may move. forbidden: (F, D) tokens that they shall not look at.
    Returns: where each of `few` comes from, by the number of the picture in `pictures`.
    Errors: ValueError where a class of theirs has no picture.
    """
    which = torch.tensor(list(few))
    own, labels = head.own[which], pictures.labels
    for c in sorted(set(own.tolist())):
        if not bool((labels == c).any()):
            raise ValueError(f"Class {c} has no picture to learn from.")
    z = F.normalize(pictures.tokens if forbidden is None else without(pictures.tokens, forbidden), dim=-1)
    away = None if forbidden is None else F.normalize(forbidden, dim=-1)
    with torch.no_grad():
        head.patch_select[0, which] = ROUNDED
    vectors = head.prototype_vectors.detach()[which].clone().requires_grad_(True)
    weight = head.last_layer.weight.detach().clone().requires_grad_(True)
    optimiser = torch.optim.Adam([{"params": [vectors], "lr": RATE}, {"params": [weight], "lr": WEIGHT_RATE}])
    gate = torch.ones(len(which), vectors.shape[-1])
    chance = torch.Generator().manual_seed(seed)
    theirs = torch.isin(labels, own)
    for _ in range(STEPS):
        some = _batch(theirs, chance)
        parts = F.normalize(vectors.transpose(1, 2), dim=-1)
        found = matching.matched(z[some], parts, matching.match(z[some], parts, head.near).token)
        a = pictures.activation[some].clone()
        a[:, which] = activation(found, gate)
        loss = F.cross_entropy(a @ weight.T, labels[some])
        weights, mine = losses.WEIGHTS["paper"], labels[some][:, None] == own
        loss = loss + weights["cluster"] * _best(found, mine) + weights["separation"] * _best(found, ~mine)
        if away is not None:
            loss = loss + AWAY * torch.einsum("fkd,td->fkt", parts, away).amax(1).mean()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        _only(weight, free)
        optimiser.step()
    with torch.no_grad():
        head.prototype_vectors[which] = vectors.detach()
    sources = _projected(head, which, z, pictures)
    _fit(head, which, free, pictures, weight.detach())
    return sources


def activations(head: Head, few: Sequence[int], tokens: Tensor) -> Tensor:
    """(n, f) activations of some prototypes on tokens (n, N, D)."""
    which = torch.tensor(list(few))
    parts, z = head.parts()[which], F.normalize(tokens, dim=-1)
    with torch.no_grad():
        found = matching.matched(z, parts, matching.match(z, parts, head.near).token)
        return activation(found, head.gate[which])


def begin(head: Head, few: Sequence[int], tokens: Tensor, others: Tensor, *, seed: int = 0) -> None:
    """Starts prototypes of a class at places that tell it apart: of centres of its unit tokens (k-means, `CENTRES` for each prototype) those that
    its pictures have and other pictures lack [OWN]; each at the token nearest to its centre, with the neighbours most like it.

    Args: tokens: (n, N, D) of pictures of the class; 0 where nothing may begin. others: (n', N, D) of other pictures.
    Errors: ValueError for fewer places than centres.
    """
    z, elsewhere = F.normalize(tokens, dim=-1), F.normalize(others, dim=-1)
    flat = z.reshape(-1, z.shape[-1])
    allowed = (flat != 0).any(-1).nonzero()[:, 0]
    wanted = CENTRES * len(few)
    if len(allowed) < wanted:
        raise ValueError(f"{len(allowed)} places are too few to begin {len(few)} prototypes.")
    chance = torch.Generator().manual_seed(seed)
    places = flat[allowed]
    centre = places[torch.randperm(len(places), generator=chance)[:wanted]].clone()
    for _ in range(LLOYD):
        nearest = (places @ centre.T).argmax(1)
        for c in range(wanted):
            if bool((nearest == c).any()):
                centre[c] = F.normalize(places[nearest == c].mean(0), dim=0)
    score = _met(z, centre) - (_met(elsewhere, centre) if len(elsewhere) else 0)
    count = head.patch_select.shape[-1]
    with torch.no_grad():
        for j, c in zip(few, score.argsort(descending=True, stable=True).tolist(), strict=False):
            at = int(allowed[(places @ centre[c]).argmax()])
            picture, token = divmod(at, z.shape[1])
            like = (z[picture] @ centre[c]).masked_fill(~head.near[token], float("-inf"))
            head.prototype_vectors[j] = tokens[picture, like.topk(count).indices].T
            head.patch_select[0, j] = ROUNDED


def without(tokens: Tensor, forbidden: Tensor) -> Tensor:
    """(n, N, D) with 0 in the place of tokens like one of `forbidden`, (F, D): cosine 0 with everything."""
    unit = F.normalize(forbidden, dim=-1)
    return tokens * ((F.normalize(tokens, dim=-1) @ unit.T).amax(-1) < ALIKE)[..., None]


def _met(z: Tensor, centre: Tensor) -> Tensor:
    """(c,) mean over pictures of the largest cosine with each centre."""
    return (z @ centre.T).amax(1).mean(0)


def _batch(theirs: Tensor, chance: torch.Generator) -> Tensor:
    """Half of the pictures of the classes that are learnt, half of all others, where there are any."""
    half = BATCH // 2
    return torch.cat(
        [
            group[torch.randint(len(group), (half,), generator=chance)]
            for group in (theirs.nonzero()[:, 0], (~theirs).nonzero()[:, 0])
            if len(group)
        ]
    )


def _best(found: Tensor, counted: Tensor) -> Tensor:
    """Mean over pictures that have any of the largest cosine of what is counted: (B, f, K), (B, f)."""
    best = found.amax(2).masked_fill(~counted, float("-inf")).amax(1)
    there = counted.any(1)
    return best[there].mean() if bool(there.any()) else found.sum() * 0


def _only(weight: Tensor, free: Tensor) -> None:
    assert weight.grad is not None
    weight.grad[~free] = 0


class _Given(nn.Module):
    """A backbone whose pictures are tokens already."""

    def tokens(self, z: Tensor) -> Tensor:
        return z


class _Few(nn.Module):
    """Some prototypes as a model of one class each, whose pictures are given as tokens: what `project` asks for."""

    def __init__(self, head: Head, which: Tensor):
        super().__init__()
        shape = head.prototype_vectors.shape
        self.head = Head(
            shape[1],
            len(which),
            head.grid,
            per_class=1,
            parts=shape[2],
            radius=head.radius,
            temperature=head.temperature,
        )
        self.features = _Given()
        with torch.no_grad():
            self.head.prototype_vectors.copy_(head.prototype_vectors[which])
            self.head.patch_select.copy_(head.patch_select[:, which])

    def forward(self, z: Tensor) -> object:
        return self.head(z)


def _projected(head: Head, which: Tensor, z: Tensor, pictures: Pictures) -> list[Source]:
    """Each onto pictures of its own class alone. Tokens that are forbidden are 0 in `z` and no place for a part."""
    made = []
    for f, j in enumerate(which.tolist()):
        few = _Few(head, which[f : f + 1])
        inside = (pictures.labels == head.own[j]).nonzero()[:, 0]
        raw = pictures.tokens[inside] * (z[inside] != 0).any(-1, keepdim=True)

        def batches(raw: Tensor = raw) -> Iterator[tuple[Tensor, Tensor]]:
            for some in torch.split(raw, BATCH):
                yield some, torch.zeros(len(some), dtype=torch.int64)

        (source,) = project(few, batches)  # type: ignore[arg-type]
        assert source.image is not None
        with torch.no_grad():
            head.prototype_vectors[j] = few.head.prototype_vectors[0]
            head.patch_select[0, j] = few.head.patch_select[0, 0]
        made.append(Source(**{**source.__dict__, "image": int(inside[source.image])}))
    return made


def _fit(head: Head, which: Tensor, free: Tensor, pictures: Pictures, weight: Tensor) -> None:
    """The weights that may move, on what the projected prototypes find: cross-entropy and the penalty of the last stage."""
    a = pictures.activation.clone()
    a[:, which] = activations(head, which.tolist(), pictures.tokens)
    foreign = free & (head.own != torch.arange(len(weight))[:, None])
    moving = weight.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([moving], lr=WEIGHT_RATE)
    for _ in range(STEPS):
        loss = F.cross_entropy(a @ moving.T, pictures.labels) + losses.LAST_LAYER_L1 * moving[foreign].abs().sum()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        _only(moving, free)
        optimiser.step()
    with torch.no_grad():
        head.last_layer.weight.copy_(torch.where(free, moving.detach(), head.last_layer.weight))
