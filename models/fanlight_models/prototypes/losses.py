"""The losses of ProtoViT (section 3.3), as in the paper or as in the authors' code, which differ (docs/prototypes.md)."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Variant = Literal["paper", "repo"]
WEIGHTS: dict[Variant, dict[str, float]] = {
    "paper": {"cluster": -0.8, "separation": 0.09, "coherence": 3e-3, "orthogonality": 1e-3},
    "repo": {"cluster": -0.8, "separation": 0.1, "coherence": 3e-3, "orthogonality": 1e-3},
}
SLOT_COHERENCE: dict[Variant, float] = {"paper": 5e-5, "repo": 1e-6}
LAST_LAYER_L1 = 1e-2


def cluster(similarity: Tensor, own: Tensor, classes: Tensor, variant: Variant = "paper") -> Tensor:
    """How near the nearest part of the picture's own class comes, to be raised: mean over the batch of the largest cosine.

    Args: similarity: (B, m, K), without gates; own: (m,) class of each prototype; classes: (B,).
    """
    return _nearest(similarity, own == classes[:, None], variant)


def separation(similarity: Tensor, own: Tensor, classes: Tensor, variant: Variant = "paper") -> Tensor:
    """The same of all other classes, to be lowered."""
    return _nearest(similarity, own != classes[:, None], variant)


def _nearest(similarity: Tensor, counted: Tensor, variant: Variant) -> Tensor:
    best = similarity.amax(2)
    # The authors multiply by the mask: a negative cosine becomes 0, and learns nothing.
    masked = best * counted if variant == "repo" else best.masked_fill(~counted, float("-inf"))
    return masked.amax(1).mean()


def coherence(parts: Tensor, gate: Tensor, variant: Variant = "paper") -> Tensor:
    """How far apart the parts of a prototype are: 1 - cosine, weighted with the gates.

    paper: mean over prototypes of the largest over pairs of (1 - cos) * g_k * g_l. repo: sum over prototypes of the largest over k of
    (1 - cos(p_k, p_last)) * g_k: its loop keeps the last value only.
    Args: parts: (m, K, D) unit vectors; gate: (m, K).
    """
    if variant == "repo":
        return ((1 - torch.einsum("mkd,md->mk", parts, parts[:, -1])) * gate).amax(1).sum()
    apart = 1 - torch.einsum("mkd,mld->mkl", parts, parts)
    both = gate[:, :, None] * gate[:, None]
    diagonal = torch.eye(parts.shape[1], dtype=torch.bool, device=parts.device)
    return (apart * both).masked_fill(diagonal, 0).flatten(1).amax(1).mean()


def orthogonality(parts: Tensor, per_class: int, variant: Variant = "paper") -> Tensor:
    """How alike the prototypes of a class are: sum over classes of the norm of Q Q^T - 1, Q of (per_class, K D). paper: squared Frobenius;
    repo: sum of magnitudes. The diagonal is K, so that it never falls below `orthogonality_floor`."""
    q = parts.flatten(1).reshape(-1, per_class, parts[0].numel())
    gram = q @ q.transpose(1, 2) - torch.eye(per_class, dtype=q.dtype, device=q.device)
    return gram.abs().sum() if variant == "repo" else gram.square().sum()


def orthogonality_floor(classes: int, per_class: int, parts: int, variant: Variant = "paper") -> float:
    """What of `orthogonality` cannot be lowered: to be taken off in a chart."""
    return float(classes * per_class * ((parts - 1) if variant == "repo" else (parts - 1) ** 2))


def last_layer(weight: Tensor, own: Tensor) -> Tensor:
    """Sum of the magnitudes of the weights from prototypes of other classes. Args: weight: (C, m); own: (m,)."""
    return (weight.abs() * (own != torch.arange(len(weight), device=own.device)[:, None])).sum()


def joint(
    logits: Tensor,
    similarity: Tensor,
    parts: Tensor,
    gate: Tensor,
    own: Tensor,
    classes: Tensor,
    variant: Variant = "paper",
    *,
    coherent: bool = True,
) -> dict[str, Tensor]:
    """The parts of the loss of the first stage and their weighted sum, "total". Args: coherent: whether coherence counts in the sum."""
    per_class = len(own) // logits.shape[1]
    found = {
        "cluster": cluster(similarity, own, classes, variant),
        "separation": separation(similarity, own, classes, variant),
        "coherence": coherence(parts, gate, variant),
        "orthogonality": orthogonality(parts, per_class, variant),
    }
    found["cross_entropy"] = F.cross_entropy(logits, classes)
    weights = WEIGHTS[variant] if coherent else {**WEIGHTS[variant], "coherence": 0.0}
    found["total"] = found["cross_entropy"] + sum(w * found[name] for name, w in weights.items())
    return found
