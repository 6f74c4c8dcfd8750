"""How good prototypes are: whether they mean one thing, keep to it under noise, look where they say, and can be led elsewhere.

Consistency and stability: Huang et al., Evaluation and Improvement of Interpretability for Self-Explainable Part-Prototype Networks (ICCV 2023),
written from the definitions. Location misalignment: Sacha et al., Interpretability Benchmark for Evaluating Spatial Misalignment of Prototypical
Parts Explanations (AAAI 2024) [RECALLED], with an attack of our own: the published one has no gradient (docs/prototypes.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.prototypes.bundle import Nearest
from fanlight_models.prototypes.projection import WEAK, Source
from fanlight_models.prototypes.protovit import ProtoViT

AGREE = 0.8  # a prototype is consistent that meets one part in this share of the pictures where it is seen
BOX = 72 / 224  # side of the fixed box of the definition, as a share of the picture's side
NOISE, CLIP = 0.2, 0.25  # of stability, in model space
EPSILON, STEP, STEPS = 0.4, 0.01, 50  # of the attack, in model space
TOP = 0.1  # share of the cells that count as where a part looks


class Seen(NamedTuple):
    """Pictures whose parts are known. x (B, 3, H, W) in model space; classes (B,); points (B, Q, 2): x, y in pixels; visible (B, Q) bool."""

    x: Tensor
    classes: Tensor
    points: Tensor
    visible: Tensor


Cases = Callable[[], Iterator[Seen]]


# --- what the weights and the projection say


def summary(
    model: ProtoViT, sources: Sequence[Source], found: Nearest, used: Tensor, labels: Tensor
) -> dict[str, object]:
    """Figures that cost nothing. Args: found, used: of `nearest`; labels: class of every training picture, (n,)."""
    head = model.head
    gate, weight = head.gate.detach(), head.last_layer.weight.detach()
    moved = [s.movement for s in sources if s.movement is not None]
    parts = gate.shape[1]
    opened = gate.sum(1).long()
    elsewhere = weight.abs().argmax(0) != head.own
    label = labels[found.image.clamp(min=0)]
    pure = ((label == head.own[:, None]) & (found.image >= 0)).double().sum(1) / (found.image >= 0).sum(1).clamp(min=1)
    return {
        "prototypes": len(sources),
        "parts": parts,
        "movement_mean": sum(moved) / max(len(moved), 1),
        "movement_most": max(moved, default=0.0),
        "self_activation_least": min((s.self_activation for s in sources), default=0.0),
        "weak_self": [j for j, s in enumerate(sources) if s.self_activation < WEAK * parts],
        "duplicates": [j for j, s in enumerate(sources) if s.duplicate_of is not None],
        "without_source": [j for j, s in enumerate(sources) if s.image is None],
        "dead": [int(j) for j in (used == 0).nonzero()[:, 0]],
        "open_parts": torch.bincount(opened, minlength=parts + 1).tolist(),
        "largest_weight_elsewhere": [int(j) for j in elsewhere.nonzero()[:, 0]],
        "coherence_mean": float(coherence(model).mean()),
        "purity_mean": float(pure.mean()),
        "purity": [round(float(v), 4) for v in pure],
    }


def coherence(model: ProtoViT) -> Tensor:
    """(m,): 1 - the largest distance (1 - cos) between two open parts; 1 of a prototype with one part."""
    parts, gate = model.head.parts().detach(), model.head.gate.detach()
    apart = 1 - parts @ parts.transpose(1, 2)
    both = gate[:, :, None] * gate[:, None, :] * (1 - torch.eye(gate.shape[1]).to(gate))
    worst: Tensor = (apart * both).amax((1, 2))
    return 1 - worst


def additivity(model: ProtoViT, x: Tensor) -> float:
    """The largest difference between a logit and the sum of its points, relative to the largest logit."""
    from fanlight_models.prototypes.algebra import points

    with torch.inference_mode():
        found = model(x)
        gate, weight = model.head.gate.double(), model.head.last_layer.weight.double()
        sums = torch.stack([points(s.double(), gate, weight).sum((1, 2)) for s in found.similarity])
        return float((sums - found.logits).abs().max() / found.logits.abs().max().clamp(min=1))


# --- which parts it meets


def met(token: Tensor, gate: Tensor, points: Tensor, patch: int, columns: int) -> Tensor:
    """(B, m, Q) bool: whether the patches of each prototype hold each key point. token (B, m, K); gate (m, K); points (B, Q, 2), NaN: nowhere."""
    inside = points.isfinite().all(2)
    cell = (points.nan_to_num(-1).long() // patch).clamp(min=0)
    at = torch.where(inside, cell[..., 1] * columns + cell[..., 0], -1)  # (B, Q)
    same = token[:, :, None, :] == at[:, None, :, None]  # (B, m, Q, K)
    hit: Tensor = (same & (gate[:, None, :] == 1)).any(3)
    return hit


def boxed(token: Tensor, gate: Tensor, points: Tensor, patch: int, columns: int, side: int) -> Tensor:
    """The same for a square of BOX of the picture's side around the centre of the patches, as rigid prototypes are scored."""
    open_ = gate[None] / gate.sum(1).clamp(min=1)[None, :, None]
    x = ((token % columns + 0.5) * patch * open_).sum(2)
    y = ((token // columns + 0.5) * patch * open_).sum(2)
    centre = torch.stack([x, y], 2)  # (B, m, 2)
    near: Tensor = ((points[:, None] - centre[:, :, None]).abs() <= BOX * side / 2).all(3)
    return near


def consistency(model: ProtoViT, cases: Cases) -> dict[str, float]:
    """Share of the prototypes that meet one and the same part in AGREE of the pictures of their class in which it is visible, by their patches
    and by the fixed box; prototypes whose class has no picture are left out."""
    shape, head = model.features.shape, model.head
    gate = head.gate.detach()
    sums: dict[str, Tensor] = {}
    seen = torch.zeros(())
    with torch.inference_mode():
        for case in cases():
            token = model(case.x).token
            mine = (case.classes[:, None] == head.own)[:, :, None] & case.visible[:, None]  # (B, m, Q)
            place = {"patches": met(token, gate, case.points, shape.patch, shape.grid[1])}
            place["box"] = boxed(token, gate, case.points, shape.patch, shape.grid[1], shape.size)
            seen = seen + mine.sum(0)
            for name, hit in place.items():
                sums[name] = sums.get(name, torch.zeros(())) + (hit & mine).sum(0)
    counted = (seen > 0).any(1)
    return {
        name: float(((total / seen.clamp(min=1)).amax(1)[counted] >= AGREE).double().mean())
        for name, total in sums.items()
    }


def stability(model: ProtoViT, cases: Cases, seed: int = 0) -> dict[str, float]:
    """Under noise, over pairs of a picture and a prototype of its class: `parts`, the share that meet exactly the same parts; `tokens`, the mean
    overlap (Jaccard) of the matched tokens."""
    shape, head = model.features.shape, model.head
    gate = head.gate.detach()
    chance = torch.Generator().manual_seed(seed)
    same = overlap = count = 0.0
    with torch.inference_mode():
        for case in cases():
            noise = (NOISE * torch.randn(case.x.shape, generator=chance)).clamp(-CLIP, CLIP)
            one, two = model(case.x).token, model(case.x + noise).token
            own = case.classes[:, None] == head.own  # (B, m)
            hits = [met(t, gate, case.points, shape.patch, shape.grid[1]) & case.visible[:, None] for t in (one, two)]
            same += float(((hits[0] == hits[1]).all(2) & own).sum())
            held = ((one[..., None] == two[..., None, :]) & (gate[:, :, None] * gate[:, None] == 1)).sum((2, 3))
            union = 2 * gate.sum(1) - held
            overlap += float((held / union.clamp(min=1))[own].sum())
            count += float(own.sum())
    return {"parts": same / max(count, 1), "tokens": overlap / max(count, 1)}


# --- whether it looks where it says


def _outside(model: ProtoViT, token: Tensor, gate: Tensor) -> Tensor:
    """(B, 1, H, W) bool: pixels outside the patches. token, gate: (B, K)."""
    rows, columns = model.features.shape.grid
    cells = torch.zeros(len(token), rows * columns)
    cells.scatter_add_(1, token, gate)
    patch = model.features.shape.patch
    return cells.reshape(-1, 1, rows, columns).repeat_interleave(patch, 2).repeat_interleave(patch, 3) == 0


def inside(model: ProtoViT, x: Tensor, j: Tensor) -> Tensor:
    """(B,): of all the activation of prototype j[i] gains and loses by pixels of x[i] (sum of |gradient|), the share inside its boxes. 1 means that
    it looks only where it says; a transformer's tokens know the whole picture."""
    each = torch.arange(len(x))
    with torch.enable_grad():
        given = x.clone().requires_grad_()
        found = model(given)
        (slope,) = torch.autograd.grad(found.activation[each, j].sum(), given)
    size = slope.abs().sum(1, keepdim=True)
    outside = _outside(model, found.token[each, j], model.head.gate.detach()[j])
    share: Tensor = 1 - (size * outside).sum((1, 2, 3)) / size.sum((1, 2, 3)).clamp(min=1e-30)
    return share


class Moved(NamedTuple):
    """What an attack outside the boxes did, (B,) each.

    Args:
        place: PLC, 100 (1 - overlap of the most similar TOP of the cells before and after), mean over open parts.
        activation: PAC, 100 (1 - a' / a). rank: PRC, how many more prototypes of other classes are above it.
    """

    place: Tensor
    activation: Tensor
    rank: Tensor


def attack(model: ProtoViT, x: Tensor, j: Tensor, steps: int = STEPS) -> Moved:
    """Lowers the activation of prototype j[i] on x[i] by its signed gradient, changing pixels outside its boxes alone, by EPSILON at most.

    It goes down the activation itself. A cross-entropy over the one output, as in the authors' code, is 0 whatever that output is, and
    so is its gradient: that measures a random start [OWN].
    """
    each = torch.arange(len(x))
    gate = model.head.gate.detach()[j]  # (B, K)
    with torch.inference_mode():
        before = model(x)
        cells = _cells(model, x, j)
    free = _outside(model, before.token[each, j], gate).to(x)
    moved = x.clone()
    for _ in range(steps):
        with torch.enable_grad():
            given = moved.requires_grad_()
            (slope,) = torch.autograd.grad(model(given).activation[each, j].sum(), given)
        moved = (given.detach() - STEP * slope.sign() * free).clamp(x - EPSILON, x + EPSILON)
    with torch.inference_mode():
        after = model(moved)
        overlap = _overlap(cells, _cells(model, moved, j))  # (B, K)
        a, b = before.activation[each, j], after.activation[each, j]
        others = model.head.own != model.head.own[j][:, None]  # (B, m)

        def above(activation: Tensor, own: Tensor) -> Tensor:
            return ((activation > own[:, None]) & others).sum(1)

        place = 100 * (1 - (overlap * gate).sum(1) / gate.sum(1).clamp(min=1))
        rank = above(after.activation, b) - above(before.activation, a)
        return Moved(place, 100 * (1 - b / a), rank)


def _cells(model: ProtoViT, x: Tensor, j: Tensor) -> Tensor:
    """(B, K, N) similarity of every cell to each part of prototype j[i]."""
    z = F.normalize(model.features.tokens(x), dim=-1)
    return torch.einsum("bnd,bkd->bkn", z, model.head.parts()[j])


def _overlap(one: Tensor, two: Tensor) -> Tensor:
    count = max(1, round(TOP * one.shape[-1]))
    chosen = [torch.zeros_like(s).scatter_(-1, s.topk(count, -1).indices, 1.0) for s in (one, two)]
    both = (chosen[0] * chosen[1]).sum(-1)
    return both / (2 * count - both)
