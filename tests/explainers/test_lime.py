from __future__ import annotations

import numpy as np
import pytest
import torch

from fanlight.errors import InvalidField
from fanlight.explainers.attribution.lime import LIME, draw, fit, near
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, item, linear, naive


@pytest.mark.parametrize("target", [Target(0), Target(3, 1)], ids=str)
def test_it_is_the_minimum_of_the_weighted_loss_in_float64(target):
    """Answers are asked one by one; the minimum is found by stacking the penalty under the data, not by normal equations."""
    model = conv_net()
    one = item(model, target=target, seed=4)
    regions, picture = explained(LIME, model, one, regions=6, samples=40, ridge=0.7, kernel=0.4, baseline="black")
    label = regions.arrays["label"]
    n = label.max() + 1
    f, x, black = naive(model, target), one.x.double(), model.colour((0, 0, 0)).double()
    members = np.random.default_rng(4).random((40, n)) < 0.5
    members[0] = True
    answers = np.array([float(f(torch.where(torch.from_numpy(m[label]), x, black))) for m in members])
    shown = members.mean(1)
    weights = np.exp(
        -((1 - shown / np.sqrt(np.maximum(shown, 1e-300))) ** 2) / (2 * 0.4**2)
    )  # cosine of a 0-1 vector with ones
    root = np.sqrt(weights)[:, None]
    left = np.concatenate([root * np.c_[np.ones(40), members], np.c_[np.zeros(n), np.sqrt(0.7) * np.eye(n)]])
    right = np.concatenate([root[:, 0] * answers, np.zeros(n)])
    solution = np.linalg.lstsq(left, right)[0]
    np.testing.assert_allclose(regions.arrays["value"], solution[1:], rtol=1e-3, atol=1e-4 * np.abs(solution[1:]).max())
    mean = np.average(answers, weights=weights)
    fitted = np.c_[np.ones(40), members] @ solution
    r2 = 1 - weights @ (answers - fitted) ** 2 / (weights @ (answers - mean) ** 2)
    assert regions.meta["r2"] == pytest.approx(r2, rel=1e-4, abs=1e-5)
    np.testing.assert_array_equal(picture.arrays["value"], regions.arrays["value"][label])


def test_of_an_additive_model_without_a_penalty_each_region_is_what_it_is_worth():
    model = linear(side=64)
    one = item(model, target=Target(1))
    regions, _ = explained(LIME, model, one, regions=20, samples=200, ridge=0)
    per_pixel = (model.net.weight[1] * one.x).sum(0).numpy()
    worth = np.bincount(regions.arrays["label"].ravel(), per_pixel.ravel())
    np.testing.assert_allclose(regions.arrays["value"], worth, rtol=1e-3, atol=1e-4)
    assert regions.meta["r2"] == pytest.approx(1, abs=1e-5)


def test_a_penalty_shrinks_and_r2_says_what_is_lost():
    rng = np.random.default_rng(0)
    members = draw(10, 400, rng)
    values = (members @ np.arange(10.0))[:, None] + rng.normal(0, 2, (400, 1))
    weights = near(members, 0.5)
    free, well = fit(members, weights, values, 0)
    tight, worse = fit(members, weights, values, 300)
    assert np.abs(tight).sum() < 0.7 * np.abs(free).sum()
    assert worse[0] < well[0] < 1
    np.testing.assert_allclose(free[:, 0], np.arange(10), atol=1)
    assert fit(members, weights, np.ones((400, 1)), 1)[1][0] == 1, "what does not vary is described"


def test_near_pictures_weigh_more():
    members = np.array([[True] * 8, [True] * 6 + [False] * 2, [True] * 2 + [False] * 6, [False] * 8])
    weights = near(members, 0.25)
    assert weights[0] == 1 and (np.diff(weights) < 0).all()
    assert weights[3] == pytest.approx(np.exp(-8))


def test_another_target_costs_no_pass_and_equals_all_classes():
    model, context = conv_net(side=64), Context()
    first, _ = explained(LIME, model, item(model, target=Target(0)), context, samples=100)
    asked = model.passes
    second, _ = explained(LIME, model, item(model, target=Target(4)), context, samples=100)
    assert model.passes == asked
    np.testing.assert_array_equal(first.arrays["all"], second.arrays["all"])
    np.testing.assert_allclose(first.arrays["all"][:, 4], second.arrays["value"], rtol=1e-5, atol=1e-6)
    explained(LIME, model, item(model, target=Target(4), seed=1), context, samples=100)
    assert model.passes > asked


def test_what_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(InvalidField, match="50 superpixels need at least 52 samples"):
        LIME.check(LIME.Params(regions=50, samples=51), (64, 64))
    with pytest.raises(InvalidField, match="more than the 64 pixels"):
        LIME.check(LIME.Params(regions=65), (8, 8))
