"""Gates, activations, losses, points, contrast and repair: numbers by hand."""

from __future__ import annotations

import math

import pytest
import torch

from fanlight_models.prototypes import algebra, losses, vit
from fanlight_models.prototypes.head import Head, activation, gates
from fanlight_models.prototypes.protovit import ProtoViT

VALUES = torch.tensor([[0.9, 0.8, 0.4, 0.7]])
SMALL = vit.Shape(size=32, patch=4, width=32, depth=2, heads=2)


@pytest.mark.parametrize(
    ("open_", "value"),
    [((1, 1, 1, 1), 2.8), ((1, 1, 0, 1), 3.2), ((0, 1, 1, 1), 7.6 / 3), ((1, 0, 0, 0), 3.6), ((0, 0, 0, 0), 0.0)],
)
def test_an_activation_is_rescaled_to_all_parts(open_: tuple[int, ...], value: float) -> None:
    assert float(activation(VALUES, torch.tensor([open_], dtype=torch.float32))[0]) == pytest.approx(value, abs=1e-5)


def test_fractional_gates() -> None:
    gate = gates(torch.tensor([[0.1, 0.1, -0.02, 0.1]], dtype=torch.float64), 100.0)
    assert float(activation(VALUES.double(), gate)[0]) == pytest.approx(3.13885, abs=5e-6)
    assert gates(torch.tensor([200.0, -200.0]), 100.0).tolist() == [1.0, 0.0]


def directions(*degrees: float) -> torch.Tensor:
    angles = [math.radians(d) for d in degrees]
    return torch.tensor([[[math.cos(a), math.sin(a)] for a in angles]])


def test_coherence_of_the_paper_and_of_its_code() -> None:
    parts = directions(0, 30, 90)
    on, off, alone = torch.ones(1, 3), torch.tensor([[1.0, 1, 0]]), torch.tensor([[0.0, 0, 1]])
    assert float(losses.coherence(parts, on)) == pytest.approx(1.0)
    assert float(losses.coherence(parts, off)) == pytest.approx(0.133975, abs=1e-6)
    assert [round(float(losses.coherence(parts, g, "repo")), 6) for g in (on, off, alone)] == [1.0, 1.0, 0.0]


def test_orthogonality_never_falls_below_its_floor() -> None:
    parts = torch.tensor([[[1.0, 0], [1, 0]], [[0, 1], [0, 1]]])
    for variant in ("paper", "repo"):
        assert float(losses.orthogonality(parts, 2, variant)) == 2.0  # type: ignore[arg-type]
        assert losses.orthogonality_floor(1, 2, 2, variant) == 2.0  # type: ignore[arg-type]


def test_a_negative_cosine_learns_nothing_in_the_code_and_something_in_the_paper() -> None:
    similarity = torch.full((1, 2, 1), -0.5)
    own, classes = torch.tensor([0, 1]), torch.tensor([0])
    assert float(losses.cluster(similarity, own, classes)) == -0.5
    assert float(losses.cluster(similarity, own, classes, "repo")) == 0.0


W = torch.tensor([[1.0, 1, -0.5, -0.5], [-0.5, -0.5, 1, 1]])
A = torch.tensor([3.6, 2.0, 1.2, 3.0])
OWN = torch.tensor([0, 0, 1, 1])


def test_logits_contributions_and_muting_by_hand() -> None:
    similarity = (A / 4)[:, None].expand(4, 4)
    every = torch.ones(4, 4)
    added = algebra.points(similarity, every, W)
    torch.testing.assert_close(added.sum(2)[0], torch.tensor([3.6, 2.0, -0.6, -1.5]))
    torch.testing.assert_close(added.sum((1, 2)), torch.tensor([3.5, 1.4]))
    torch.testing.assert_close(added.sum((1, 2)).softmax(0), torch.tensor([0.890903, 0.109097]), atol=1e-6, rtol=0)
    a, logits = algebra.edited(similarity, every, W, mute=[3], shut=[])
    torch.testing.assert_close(logits, torch.tensor([5.0, -1.6]))
    assert a[3] == 0


def test_the_smallest_set_that_flips_the_answer() -> None:
    found = algebra.contrast(A, W, OWN, 4, 0, 1)
    torch.testing.assert_close(found.difference, torch.tensor([5.4, 3.0, -1.8, -4.5]))
    assert found.margin == pytest.approx(2.1) and found.flip == [0]
    torch.testing.assert_close(found.lacking, torch.tensor([0.0, 0, 2.8, 1.0]))
    assert algebra.contrast(A, W, OWN, 4, 1, 0).flip == [], "the other class is ahead already"


def test_the_flip_set_is_the_smallest_of_all_sets() -> None:
    from itertools import combinations

    generator = torch.Generator().manual_seed(3)
    for _ in range(40):
        a, w = torch.randn(7, generator=generator), torch.randn(2, 7, generator=generator)
        found = algebra.contrast(a, w, torch.zeros(7), 4, 0, 1)
        if found.margin < 0:
            continue
        sizes = [
            n
            for n in range(8)
            for some in combinations(range(7), n)
            if float(found.difference.sum() - found.difference[list(some)].sum()) < 0
        ]
        assert (min(sizes) if sizes else None) == (len(found.flip) if found.flip is not None else None)


def test_removal_repairs_what_is_left() -> None:
    inverse = torch.linalg.inv(torch.tensor([[2.0, 1], [1, 2]]))
    found = algebra.remove(torch.ones(2), inverse, 0)
    assert found.loss == pytest.approx(0.75)
    torch.testing.assert_close(found.weight, torch.tensor([0.0, 1.5]))


@pytest.mark.parametrize("kind", ["deit", "cait"])
def test_points_of_a_whole_model_add_up_to_its_logits(kind: str) -> None:
    torch.manual_seed(0)
    model = ProtoViT(vit.Shape(**{**vars(SMALL), "kind": kind}), 3, per_class=4).eval()
    x = torch.randn(2, 3, 32, 32)
    found = model(x)
    assert found.activation.abs().max() <= 4
    for i in range(2):
        added = algebra.points(found.similarity[i], model.head.gate, model.head.last_layer.weight)
        torch.testing.assert_close(added.sum((1, 2)), found.logits[i], atol=1e-5, rtol=0)
    torch.testing.assert_close(model(x[1:]).logits[0], found.logits[1], atol=1e-5, rtol=0)


def test_prototypes_in_another_order_give_the_same_in_that_order_and_any_length() -> None:
    torch.manual_seed(0)
    head = Head(8, 2, (4, 5), per_class=3)
    z = torch.randn(2, 20, 8)
    before = head(z)
    turn = torch.randperm(6)
    with torch.no_grad():
        head.prototype_vectors.copy_(head.prototype_vectors[turn] * 7)
        head.last_layer.weight.copy_(head.last_layer.weight[:, turn])
    after = head(z)
    assert torch.equal(after.token, before.token[:, turn])
    torch.testing.assert_close(after.logits, before.logits)


def test_rounding_keeps_the_widest_gate_of_a_prototype_that_would_be_empty() -> None:
    head = Head(8, 2, (4, 4), per_class=2)
    with torch.no_grad():
        head.patch_select.fill_(-0.05)
        head.patch_select[0, 1, 2] = -0.01
        head.patch_select[0, 3] = torch.tensor([0.1, -0.1, 0.1, -0.1])
    assert head.round_gates() == [0, 1, 2]
    assert head.gate.sum(1).tolist() == [1, 1, 1, 2]
    assert head.gate[1].tolist() == [0, 0, 1, 0]
