"""Taking prototypes out of a last layer for good, and what the others have to become so that the answers change least.

Hassibi and Stork's optimal brain surgeon (NIPS 1992) for many weights at once. With the loss's Hessian H at the present weights w, among all
changes d with d_E = -w_E on the weights E that go, the one that raises a quadratic loss least is d_R = H_RR^-1 H_RE w_E on the others; the rise
is d'Hd / 2. Of one weight that is the known step (`algebra.remove`). Backbone and prototypes stay, as in Proto-RSet (CVPR 2025), which
intersects its ellipsoid of near-optimal last layers with w_E = 0.

H is that of the cross-entropy, from the model's own probabilities: no label goes into it. It is used at weights that minimise the loss only nearly
(the last layer was trained for some epochs, and with a penalty), so accuracy is measured afterwards, never inferred from the rise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

WHOLE = 4096
"""Weights up to which the whole Hessian is used; beyond, its blocks of one class each [OWN]."""
DAMPING = 1e-2
"""Of the mean of the Hessian's diagonal, added to it [OWN]: directions that no picture shows are not to be repaired into."""


class Repaired(NamedTuple):
    """A last layer without some prototypes.

    Args:
        weight: (C, m) float32, 0 in the columns that went.
        rise: of the mean cross-entropy in nats, second order, with damping.
        plain: the same rise where the columns are set to 0 and nothing else is changed; never less.
        whole: whether the whole Hessian was used.
    """

    weight: Tensor
    rise: float
    plain: float
    whole: bool


def without(
    weight: Tensor, activation: Tensor, gone: Sequence[int], damping: float = DAMPING, most: int = WHOLE
) -> Repaired:
    """Args: weight: (C, m); activation: (n, m) of n pictures; gone: prototypes; most: weights up to which the whole Hessian is used.

    Errors: ValueError for nothing, or all, to take out.
    """
    classes, count = weight.shape
    out = torch.zeros(count, dtype=torch.bool)
    out[list(gone)] = True
    if not out.any() or out.all():
        raise ValueError(f"Of {count} prototypes at least one must go and one must stay.")
    if not len(activation):
        raise ValueError("Without pictures nothing says what the other prototypes have to become.")
    w, a = weight.double(), activation.double()
    p = (a @ w.T).softmax(1)  # (n, C)
    whole = classes * count <= most
    d = torch.where(out, -w, torch.zeros(()).double())  # (C, m): set to 0 and nothing else
    if whole:
        h = _damped(_hessian(p, a), damping)
        flat, of = d.reshape(-1), out.repeat(classes)
        moved = _moved(h, flat, of).reshape(classes, count)
        rise, plain = (float(v.reshape(-1) @ h @ v.reshape(-1)) / 2 for v in (moved, d))
    else:
        moved, rise, plain = torch.zeros_like(w), 0.0, 0.0
        for c in range(classes):
            h = _damped((a * (p[:, c] * (1 - p[:, c]))[:, None]).T @ a / len(a), damping)
            moved[c] = _moved(h, d[c], out)
            rise, plain = rise + float(moved[c] @ h @ moved[c]) / 2, plain + float(d[c] @ h @ d[c]) / 2
    repaired = (w + moved).float()
    repaired[:, out] = 0
    return Repaired(repaired, rise, plain, whole)


def _hessian(p: Tensor, a: Tensor) -> Tensor:
    """(C m, C m) of the mean cross-entropy in the weights: blocks of classes c, e are sum over pictures of (p_c [c = e] - p_c p_e) a a' / n."""
    classes, count, n = p.shape[1], a.shape[1], len(a)
    h = torch.empty(classes, count, classes, count, dtype=a.dtype)
    for c in range(classes):
        for e in range(c, classes):
            share = p[:, c] * (float(c == e) - p[:, e])
            h[c, :, e] = (a * share[:, None]).T @ a / n
            h[e, :, c] = h[c, :, e].T
    return h.reshape(classes * count, classes * count)


def _damped(h: Tensor, damping: float) -> Tensor:
    h.diagonal().add_(damping * float(h.diagonal().mean()) + 1e-12)
    return h


def _moved(h: Tensor, d: Tensor, out: Tensor) -> Tensor:
    """The change with `d` where `out`, and elsewhere what raises d'Hd least."""
    stay = ~out
    factor = torch.linalg.cholesky(h[stay][:, stay])
    answer = -torch.cholesky_solve((h[stay][:, out] @ d[out])[:, None], factor)[:, 0]
    found = d.clone()
    found[stay] = answer
    return found
