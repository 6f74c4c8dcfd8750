"""Quality of prototypes: known answers by hand, and that the attack has a gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fanlight_models.prototypes import quality, vit
from fanlight_models.prototypes.bundle import Nearest
from fanlight_models.prototypes.nearest import nearest
from fanlight_models.prototypes.projection import Source, project
from fanlight_models.prototypes.protovit import ProtoViT

CLASSES = torch.tensor([0, 1, 2] * 4)


@pytest.fixture(scope="module")
def made():
    torch.manual_seed(0)
    model = ProtoViT(vit.Shape(size=32, patch=4, width=16, depth=2, heads=2), 3, per_class=2)
    for p in model.features.parameters():
        if p.ndim > 1:
            torch.nn.init.normal_(p, std=0.3)
    x = torch.randn(12, 3, 32, 32)

    def batches():
        for at in range(0, 12, 5):
            yield x[at : at + 5], CLASSES[at : at + 5]

    sources = project(model, batches)
    return model.requires_grad_(False), x, batches, sources


def test_key_points_are_met_by_the_patch_they_lie_in_and_by_no_other():
    token = torch.tensor([[[0, 5, 6, 9]]])  # a grid of 4 columns, patches of 8 px
    gate = torch.tensor([[1.0, 1.0, 0.0, 1.0]])
    points = torch.tensor([[[7.9, 0.0], [8.0, 8.0], [17.0, 9.0], [float("nan"), 3.0], [9.0, 20.0]]])
    assert quality.met(token, gate, points, 8, 4).tolist() == [[[True, True, False, False, True]]]


def test_the_fixed_box_lies_around_the_centre_of_the_open_patches():
    token, gate = (
        torch.tensor([[[0, 1, 3, 3]]]),
        torch.tensor([[1.0, 1.0, 0.0, 0.0]]),
    )  # centre (8, 4) of 32 px: reach 5.14
    points = torch.tensor([[[8.0, 4.0], [13.1, 4.0], [13.2, 4.0], [8.0, 9.2]]])
    assert quality.boxed(token, gate, points, 8, 4, 32).tolist() == [[[True, True, False, False]]]


def test_consistency_is_the_share_of_prototypes_that_keep_to_one_part(made):
    model, x, _, _ = made
    with torch.inference_mode():
        token = model(x).token
    gate = model.head.gate
    # key point 0 lies where each picture's own prototypes 0, 2, 4 look with their first open part; point 1 is never visible
    first = token[torch.arange(12), 2 * CLASSES, gate[2 * CLASSES].argmax(1)]
    points = torch.stack([torch.stack([first % 8, first // 8], 1) * 4.0 + 1, torch.zeros(12, 2)], 1)
    visible = torch.tensor([[True, False]]).expand(12, 2)
    found = quality.consistency(model, lambda: iter([quality.Seen(x, CLASSES, points, visible)]))
    assert 0.5 <= found["patches"] <= 1  # prototypes 0, 2, 4 always, the others by chance
    alone = points.clone()
    alone[:] = float("nan")
    assert quality.consistency(model, lambda: iter([quality.Seen(x, CLASSES, alone, visible)]))["patches"] == 0


def test_without_noise_everything_is_stable(made, monkeypatch):
    model, x, _, _ = made
    case = quality.Seen(x, CLASSES, torch.rand(12, 3, 2) * 31, torch.ones(12, 3, dtype=torch.bool))
    monkeypatch.setattr(quality, "NOISE", 0.0)
    assert quality.stability(model, lambda: iter([case])) == {"parts": 1.0, "tokens": pytest.approx(1.0)}
    monkeypatch.setattr(quality, "NOISE", 5.0)
    monkeypatch.setattr(quality, "CLIP", 20.0)
    assert quality.stability(model, lambda: iter([case]))["tokens"] < 0.9


def test_a_network_that_sees_only_its_patch_has_all_of_its_sensitivity_inside(made):
    model, x, _, _ = made
    j = torch.zeros(12, dtype=torch.int64)
    leaking = quality.inside(model, x, j)
    assert ((leaking > 0) & (leaking < 1)).all()
    blind = ProtoViT(vit.Shape(size=32, patch=4, width=16, depth=1, heads=2), 3, per_class=2)
    for block in blind.features.blocks:  # no attention: a token is its patch, the class token knows nothing
        block.attn.proj.weight.data.zero_()
    torch.testing.assert_close(quality.inside(blind, x, j), torch.ones(12))


def test_a_cross_entropy_over_one_output_has_no_gradient_and_our_attack_has_one(made):
    model, x, _, _ = made
    one = torch.tensor([[2.5]], requires_grad=True)
    loss = F.cross_entropy(one, torch.tensor([0]))
    (slope,) = torch.autograd.grad(loss, one)
    assert float(loss.detach()) == 0 and float(slope.abs().max()) == 0  # X1
    j = torch.arange(12) % 6
    moved = quality.attack(model, x, j, steps=10)
    assert (moved.activation > 0).all()
    assert ((moved.place >= 0) & (moved.place <= 100)).all()


def test_an_attack_leaves_the_boxes_alone(made):
    model, x, _, _ = made
    with torch.inference_mode():
        token = model(x).token[:, 0]
    free = quality._outside(model, token, model.head.gate[:1].expand(12, -1))
    for b in range(12):
        shut = {int(t) for t, g in zip(token[b], model.head.gate[0], strict=True) if g == 1}
        cells = free[b, 0, ::4, ::4].reshape(-1)
        assert {int(n) for n in (~cells).nonzero()[:, 0]} == shut
        assert int((~free[b, 0]).sum()) == 16 * len(shut)


def test_nearest_pictures_equal_a_loop_over_all(made):
    model, x, batches, _ = made
    found, used = nearest(model, batches, count=4)
    with torch.inference_mode():
        whole = model(x)
    order = whole.activation.T.argsort(dim=1, descending=True, stable=True)[:, :4]
    assert torch.equal(found.image, order)
    for j in range(6):
        torch.testing.assert_close(found.activation[j], whole.activation[order[j], j])
        assert torch.equal(found.token[j], whole.token[order[j], j])
    assert int(used.sum()) == 12 * 2


def test_the_summary_counts_what_it_says(made):
    model, _, _, _ = made
    source = Source(0, [0, 1, 2, 3], [0, 1, 2, 3], [1.0] * 4, 0.2, 4.0)
    weak, twin = (
        Source(1, [0] * 4, [0] * 4, [1.0] * 4, 0.4, 3.0),
        Source(0, [0, 1, 2, 3], [0] * 4, [1.0] * 4, 0.6, 4.0, 0),
    )
    images = torch.tensor([[0, 1]] * 5 + [[2, -1]])
    found = Nearest(images, torch.ones(6, 2), torch.zeros(6, 2, 4, dtype=torch.int64))
    used = torch.tensor([1, 0, 2, 1, 1, 1])
    labels = torch.tensor([0, 1, 2])
    said = quality.summary(model, [source, weak, twin, source, source, source], found, used, labels)
    assert said["weak_self"] == [1] and said["duplicates"] == [2] and said["dead"] == [1]
    assert said["movement_mean"] == pytest.approx((0.2 * 4 + 0.4 + 0.6) / 6)
    assert said["purity"][0] == 0.5 and said["purity"][5] == 1.0
    assert sum(said["open_parts"]) == 6
    assert quality.additivity(model, torch.randn(3, 3, 32, 32)) < 1e-5
