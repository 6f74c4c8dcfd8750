from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from fanlight.errors import InvalidField
from fanlight.explainers.attribution.shapley import Shapley, estimate, everything, exact, growing, orders, pairs
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, item, linear, naive


def by_all_orders(n, value):
    """The definition: the mean contribution over every order."""
    phi, count = np.zeros(n), 0
    for order in permutations(range(n)):
        before = set()
        for i in order:
            phi[i] += value(before | {i}) - value(before)
            before = before | {i}
        count += 1
    return phi / count


@pytest.mark.parametrize("target", [Target(0), Target(3, 1)], ids=str)
def test_with_all_combinations_it_equals_the_definition_in_float64(target):
    model = conv_net()
    one = item(model, target=target)
    regions, picture, curve = explained(Shapley, model, one, regions=4, samples=16)
    label = regions.arrays["label"]
    f, x = naive(model, target), one.x.double()

    def value(present):
        return float(f(torch.where(torch.from_numpy(np.isin(label, list(present))), x, 0)))  # grey is 0 here

    twin = by_all_orders(4, value)
    np.testing.assert_allclose(regions.arrays["value"], twin, rtol=1e-4, atol=1e-5 * np.abs(twin).max())
    assert regions.meta["exact"] is True and regions.meta["evaluations"] == 16
    assert regions.meta["standard_error"] == [0.0] * 4
    np.testing.assert_array_equal(picture.arrays["value"], regions.arrays["value"][label])
    np.testing.assert_array_equal(curve.arrays["lo"], curve.arrays["hi"])


def game(members):
    """Eight players with interactions, (M, 8) -> (M, 2)."""
    z = members.astype(float)
    first = z @ np.arange(8) + 6 * z[:, 0] * z[:, 1] - 5 * z[:, 2] * z[:, 3] * z[:, 4]
    return np.stack([first, 8 * z[:, 5] * z[:, 7]], 1)


TRUTH = np.stack([np.arange(8.0), np.zeros(8)], 1)
TRUTH[[0, 1], 0] += 3
TRUTH[[2, 3, 4], 0] -= 5 / 3
TRUTH[[5, 7], 1] += 4


def test_exact_values_are_those_of_a_game_with_known_ones():
    np.testing.assert_allclose(exact(game(everything(8))), TRUTH, atol=1e-12)


def sampled(seed, count):
    order = orders(8, count, np.random.default_rng(seed))
    return estimate(order, game(growing(order)), game(np.zeros((1, 8)))[0], game(np.ones((1, 8)))[0])


def test_sampled_values_are_unbiased_and_scatter_as_stated():
    found = [sampled(seed, 10) for seed in range(300)]
    values = np.stack([e.value for e in found])
    scatter = values.std(0, ddof=1)
    assert (np.abs(values.mean(0) - TRUTH) <= 4 * scatter / np.sqrt(300) + 1e-9).all()
    stated = np.sqrt(np.mean([e.error**2 for e in found], 0))
    np.testing.assert_allclose(stated, scatter, rtol=0.2, atol=1e-9)
    np.testing.assert_allclose(values.sum(1), game(np.ones((1, 8))) - game(np.zeros((1, 8))) + 0 * values.sum(1))


def test_pairs_scatter_less_than_as_many_single_orders():
    paired = np.stack([sampled(seed, 8).value for seed in range(200)])
    single = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        order = np.stack([rng.permutation(8) for _ in range(16)])
        single.append(estimate(order, game(growing(order)), game(np.zeros((1, 8)))[0], game(np.ones((1, 8)))[0]).value)
    assert ((paired - TRUTH) ** 2).mean() < 0.6 * ((np.stack(single) - TRUTH) ** 2).mean()


def test_of_an_additive_model_one_pair_is_exact_and_has_no_error():
    model = linear(side=64)
    one = item(model, target=Target(1))
    regions, _, _ = explained(Shapley, model, one, regions=20, samples=80)
    per_pixel = (model.net.weight[1] * one.x).sum(0).numpy()
    worth = np.bincount(regions.arrays["label"].ravel(), per_pixel.ravel())
    np.testing.assert_allclose(regions.arrays["value"], worth, rtol=1e-3, atol=1e-4)
    assert max(regions.meta["standard_error"]) < 1e-4


def test_the_values_add_up_and_the_curve_ends_at_them():
    model = conv_net(side=64)
    regions, _, curve = explained(Shapley, model, item(model), regions=16, samples=300)
    gain = regions.meta["f_x"] - regions.meta["f_baseline"]
    assert regions.arrays["value"].sum() == pytest.approx(gain, rel=1e-4)
    assert regions.meta["completeness_error"] < 1e-6
    n = regions.meta["regions"]
    assert regions.meta["pairs"] == pairs(n, 300) and curve.arrays["x"][-1] == regions.meta["evaluations"] <= 300
    largest = np.sort(np.abs(regions.arrays["value"]))[::-1][:5]
    np.testing.assert_allclose(np.abs(curve.arrays["y"][:, -1]), largest, rtol=1e-5)
    width = (curve.arrays["hi"] - curve.arrays["lo"])[:, -1] / 2
    first = int(curve.meta["series"][0].split()[1]) - 1
    assert width[0] == pytest.approx(1.96 * regions.meta["standard_error"][first], rel=1e-4)


def test_another_target_costs_no_pass_and_equals_all_classes():
    model, context = conv_net(side=64), Context()
    first, _, _ = explained(Shapley, model, item(model, target=Target(0)), context, samples=200)
    asked = model.passes
    second, _, _ = explained(Shapley, model, item(model, target=Target(4)), context, samples=200)
    assert model.passes == asked
    np.testing.assert_array_equal(first.arrays["all"], second.arrays["all"])
    np.testing.assert_allclose(first.arrays["all"][:, 4], second.arrays["value"], rtol=1e-5, atol=1e-6)


def test_what_is_shown_meanwhile_is_the_estimate_so_far():
    model = conv_net(side=64)
    one = item(model)
    run = Shapley().run(model, [one], Shapley.Params(regions=9, samples=200), Context(16))
    steps = [s for s in run if s.preview is not None]
    few, _, _ = explained(Shapley, model, one, regions=9, samples=3 * 16)
    shown = steps[2].preview()
    np.testing.assert_allclose(shown.arrays["value"], few.arrays["value"][few.arrays["label"]], rtol=1e-4, atol=1e-5)


def test_what_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(InvalidField, match="20 superpixels need at least 78 samples"):
        Shapley.check(Shapley.Params(regions=20, samples=77), (64, 64))
    with pytest.raises(InvalidField, match="more than the 64 pixels"):
        Shapley.check(Shapley.Params(regions=65), (8, 8))
