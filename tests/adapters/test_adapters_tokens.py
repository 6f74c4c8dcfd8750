"""Vision transformers: the tokens of the picture as a grid, and Grad-CAM on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.adapters.tokens import Grid, as_grid, grid_of
from fanlight.explainers.attribution.grad_cam import GradCAM
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item
from support.tiny_vit import network, tiny_vit, twin


@pytest.mark.parametrize(
    ("tokens", "size", "grid"),
    [
        (197, (224, 224), (1, 14, 14)),
        (198, (224, 224), (2, 14, 14)),
        (201, (224, 224), (5, 14, 14)),
        (196, (224, 224), (0, 14, 14)),
        (1374, (518, 518), (5, 37, 37)),
        (1 + 14 * 28, (224, 448), (1, 14, 28)),
        (1 + 12 * 16, (192, 256), (1, 12, 16)),
        (1 + 7 * 9, (100, 130), (1, 7, 9)),
        (1 + 8 * 8, (100, 100), (1, 8, 8)),
        (2, (224, 224), None),
        (220, (224, 224), None),
    ],
)
def test_prefix_and_grid_follow_from_the_number_of_tokens(tokens, size, grid):
    assert grid_of(tokens, size) == (None if grid is None else Grid(*grid))


def test_a_known_prefix_is_held_to():
    assert grid_of(197, (224, 224), 1) == Grid(1, 14, 14)
    assert grid_of(197, (224, 224), 5) is None


@pytest.mark.parametrize("shape", [(2, 6, 4, 8), (2, 4, 8, 6), (2, 3 + 4 * 8, 6)], ids=str)
def test_the_way_to_a_grid_and_back_changes_nothing(shape):
    output = torch.arange(np.prod(shape)).reshape(shape).float()
    grid, back = as_grid(output, (32, 64))
    assert grid.shape == (2, 6, 4, 8)
    assert torch.equal(back(grid), output)


def test_what_is_no_grid_is_none():
    assert as_grid(torch.zeros(2, 5), (32, 32)) is None
    assert as_grid(torch.zeros(2, 3, 5), (32, 32)) is None


@pytest.mark.parametrize("prefix", [1, 2, 5])
def test_the_grid_is_upstream_of_the_logits_and_changes_none_of_them(prefix):
    model = tiny_vit(prefix=prefix)
    assert model.features_at == "blocks.1.norm1"
    assert {"spatial-features", "attention", "embedding"} <= model.capabilities
    x = torch.randn(2, 3, 32, 32).requires_grad_()
    logits, grid = model.features(x)
    assert grid.shape == (2, 8, 4, 4)
    assert torch.equal(logits, model.logits(x))
    (slope,) = torch.autograd.grad(logits[:, 0].sum(), grid)
    assert (slope != 0).any(1).all(), "every place of the picture has a say"
    assert not any(m._forward_hooks for m in model.net.modules())


@pytest.mark.parametrize("target", [Target(0), Target(2, 1)], ids=str)
def test_grad_cam_of_a_transformer_equals_the_map_computed_by_hand(target):
    """float64 throughout; slopes by central differences of a network written in numpy, which knows no autograd."""
    net = network(3)
    model = classifier(net, 5, features_at="auto")
    one = item(model, target=target)
    before, after = twin(net)
    start = before(one.x.double().numpy())
    normed = before.norm(start)

    def value(normed):
        logits = after(start, normed)
        return logits[target.index] - (0 if target.minus is None else logits[target.minus])

    np.testing.assert_allclose(
        after(start, normed), net.double()(one.x[None].double()).detach().numpy()[0], rtol=1e-10, atol=1e-12
    )
    slope = np.zeros_like(normed)
    for place in np.ndindex(*normed.shape):
        step = np.zeros_like(normed)
        step[place] = 1e-5
        slope[place] = (value(normed + step) - value(normed - step)) / 2e-5
    cells = slice(1, None)  # the class token is no place of the picture
    cam = (normed[cells] * slope[cells].mean(0)).sum(1).reshape(4, 4)

    x = one.x[None].double().requires_grad_()
    logits, grid = model.features(x)
    (found,) = torch.autograd.grad(target.value(logits).sum(), grid)
    np.testing.assert_allclose(found[0].flatten(1).T.numpy(), slope[cells], rtol=1e-6, atol=1e-9)
    ours = (found.mean((2, 3), keepdim=True) * grid.detach()).sum(1)[0].numpy()
    np.testing.assert_allclose(ours, cam, rtol=1e-6, atol=1e-9)

    net.float()
    (drawn,) = explained(GradCAM, model, one, evidence="both")
    assert drawn.meta["grid"] == [4, 4]
    middle = drawn.arrays["value"].reshape(4, 8, 4, 8)[:, 3:5, :, 3:5].mean((1, 3))
    assert np.corrcoef(middle.ravel(), cam.ravel())[0, 1] > 0.99


def test_behind_the_last_attention_the_places_have_no_say_and_the_site_is_not_taken():
    """Grad-CAM on the output of the last block, as is often written, is zero everywhere for a class token."""
    model = tiny_vit(features_at="blocks.1")
    x = torch.randn(1, 3, 32, 32).requires_grad_()
    logits, grid = model.features(x)
    (slope,) = torch.autograd.grad(logits.sum(), grid)
    assert not slope.any()


def test_a_convolutional_network_is_read_at_its_last_grid():
    plain = conv_net()
    found = classifier(plain.net, 5, features_at="auto")
    assert found.features_at == "3"
    nothing = classifier(nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2)), 2, features_at="auto")
    assert nothing.features_at is None and "spatial-features" not in nothing.capabilities


def test_the_number_of_prefix_tokens_can_be_stated_and_is_part_of_the_digest():
    net = network(prefix=1)
    small = Preprocessing((32, 32))
    known, other = (
        TorchImageClassifier(net, list("abcde"), small, "blocks.1.norm1", prefix_tokens=n) for n in (1, None)
    )
    x = torch.randn(1, 3, 32, 32)
    assert torch.equal(known.features(x)[1], other.features(x)[1])
    assert known.digest != other.digest
