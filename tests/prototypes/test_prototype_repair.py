"""Taking prototypes out of a last layer: the known step, the least rise, and answers that stay."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.prototypes import repair
from fanlight_models.prototypes.algebra import remove


def case(classes: int = 3, count: int = 6, n: int = 200) -> tuple[Tensor, Tensor]:
    """Weights (C, m) and activations (n, m) in which prototype 1 says nearly what 0 and 2 say together."""
    chance = torch.Generator().manual_seed(0)
    a = torch.randn(n, count, generator=chance, dtype=torch.float64)
    a[:, 1] = 0.5 * a[:, 0] + 0.5 * a[:, 2] + 0.01 * a[:, 1]
    return torch.randn(classes, count, generator=chance, dtype=torch.float64), a


def test_one_weight_gone_is_the_step_of_the_optimal_brain_surgeon() -> None:
    """H1 of the specification: H = [[2, 1], [1, 2]], w = (1, 1): w' = (0, 1.5), rise 0.75, plain zeroing 1."""
    h, w = torch.tensor([[2.0, 1.0], [1.0, 2.0]]).double(), torch.ones(2).double()
    out = torch.tensor([True, False])
    d = torch.where(out, -w, 0.0)
    moved = repair._moved(h, d, out)
    assert torch.allclose(w + moved, torch.tensor([0.0, 1.5]).double())
    assert float(moved @ h @ moved) / 2 == pytest.approx(0.75) and float(d @ h @ d) / 2 == pytest.approx(1.0)
    known = remove(w, torch.linalg.inv(h), 0)
    assert torch.allclose(w + moved, known.weight) and known.loss == pytest.approx(0.75)


def test_the_hessian_is_that_of_the_cross_entropy() -> None:
    """By automatic differentiation; it does not depend on the labels."""
    w, a = case(n=20)
    labels = torch.randint(0, 3, (20,), generator=torch.Generator().manual_seed(1))
    loss = lambda flat: F.cross_entropy(a @ flat.reshape(3, 6).T, labels)  # noqa: E731
    expected = torch.autograd.functional.hessian(loss, w.reshape(-1))
    assert isinstance(expected, Tensor)
    found = repair._hessian((a @ w.T).softmax(1), a)
    assert torch.allclose(found, expected, atol=1e-12)


def test_what_others_can_say_is_said_by_them() -> None:
    """Prototype 1 is half of 0 and half of 2: without it these take over its weights, and the answers stay."""
    w, a = case()
    before = (a @ w.T).softmax(1)
    found = repair.without(w, a, [1], damping=1e-6)
    assert found.whole and bool((found.weight[:, 1] == 0).all())
    off = w.float() - found.weight
    centred = lambda x: x - x.mean(0)  # noqa: E731 (what all classes gain alike changes no answer)
    assert torch.allclose(centred(off[:, 0]), centred(-0.5 * w[:, 1].float()), atol=0.05)
    after = (a @ found.weight.double().T).softmax(1)
    zeroed = w.clone()
    zeroed[:, 1] = 0
    plainly = (a @ zeroed.T).softmax(1)
    assert (after - before).abs().max() < 0.05 < (plainly - before).abs().max()
    assert 0 <= found.rise < 0.05 * found.plain


def test_by_classes_it_still_rises_less_than_setting_to_zero() -> None:
    w, a = case()
    found = repair.without(w, a, [1, 4], most=0)
    assert not found.whole and 0 <= found.rise < found.plain
    assert bool((found.weight[:, [1, 4]] == 0).all()) and bool(found.weight[:, [0, 2, 3, 5]].all())


def test_a_prototype_that_is_on_nowhere_costs_nothing() -> None:
    w, a = case()
    a[:, 3] = 0
    found = repair.without(w, a, [3], damping=1e-9)
    assert found.rise < 1e-6 and torch.allclose(found.weight[:, [0, 1, 2, 4, 5]], w[:, [0, 1, 2, 4, 5]].float())


def test_what_makes_no_sense_is_a_sentence() -> None:
    w, a = case()
    for gone, pictures in (([], a), (list(range(6)), a), ([0], a[:0])):
        with pytest.raises(ValueError, match=r"[.]$"):
            repair.without(w, pictures, gone)
