from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch

from fanlight.errors import InvalidField
from fanlight.explainers.attribution.kernel_shap import KernelSHAP, coalitions, regression
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, item, linear, naive


def shapley(n, value):
    """From the definition: the mean marginal value over all subsets, weighted by their number of orders."""
    phi = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for subset in combinations(others, size):
                phi[i] += weight * (value({*subset, i}) - value(set(subset)))
    return phi


@pytest.mark.parametrize("target", [Target(0), Target(3, 1)], ids=str)
def test_with_all_combinations_it_equals_the_definition_in_float64(target):
    model = conv_net()
    one = item(model, target=target)
    regions, picture = explained(KernelSHAP, model, one, patch=16, samples=64)
    f, x = naive(model, target), one.x.double()

    def value(present):
        kept = torch.zeros_like(x)  # grey is 0 in this model's space
        for square in present:
            row, column = 16 * (square // 2), 16 * (square % 2)
            kept[:, row : row + 16, column : column + 16] = x[:, row : row + 16, column : column + 16]
        return float(f(kept))

    twin = shapley(4, value)
    np.testing.assert_allclose(regions.arrays["value"], twin, rtol=1e-4, atol=1e-5 * np.abs(twin).max())
    assert regions.meta["exact"] is True and regions.meta["evaluations"] == 16
    np.testing.assert_array_equal(picture.arrays["value"], regions.arrays["value"][regions.arrays["label"]])


def test_of_an_additive_model_every_sample_size_gives_each_square_what_it_is_worth():
    model = linear(side=64)
    one = item(model, target=Target(1))
    worth = (model.net.weight[1] * one.x).sum(0).numpy().reshape(8, 8, 8, 8).sum((1, 3)).ravel()
    for samples in (130, 200, 512):
        regions, _ = explained(KernelSHAP, model, one, patch=8, samples=samples)
        np.testing.assert_allclose(regions.arrays["value"], worth, rtol=1e-3, atol=1e-4)
        assert regions.meta["r2"] == pytest.approx(1, abs=1e-6)


def test_the_values_add_up_whatever_the_sample():
    model = conv_net(side=64)
    for seed in range(3):
        regions, _ = explained(KernelSHAP, model, item(model, seed=seed), patch=8, samples=150)
        gain = regions.meta["f_x"] - regions.meta["f_baseline"]
        assert regions.arrays["value"].sum() == pytest.approx(gain, rel=1e-4)
        assert regions.meta["completeness_error"] < 1e-9


def game(members):
    """Ten players with three interactions, (M, 10) -> (M, 2)."""
    z = members.astype(float)
    first = z @ np.arange(10) + 6 * z[:, 0] * z[:, 1] - 5 * z[:, 2] * z[:, 3] * z[:, 4]
    return np.stack([first, 8 * z[:, 5] * z[:, 9]], 1)


def test_sampling_comes_nearer_to_the_truth_with_more_samples():
    truth = np.stack([np.arange(10.0), np.zeros(10)], 1)
    truth[[0, 1], 0] += 3
    truth[[2, 3, 4], 0] -= 5 / 3
    truth[[5, 9], 1] += 4
    empty, full = game(np.zeros((1, 10)))[0], game(np.ones((1, 10)))[0]
    errors = []
    for samples in (60, 240, 960):
        estimates = []
        for seed in range(8):
            members, weights = coalitions(10, samples, np.random.default_rng(seed))
            estimates.append(regression(members, weights, game(members), empty, full))
        errors.append(np.sqrt(np.mean((np.stack(estimates) - truth) ** 2)))
        spread = np.std(estimates, axis=0).max() / np.sqrt(8)
        assert np.abs(np.mean(estimates, axis=0) - truth).max() < 5 * spread + 1e-9, "unbiased"
    assert errors[0] > errors[1] > errors[2]
    members, weights = coalitions(10, 1024, np.random.default_rng(0))
    assert len(members) == 1022
    np.testing.assert_allclose(regression(members, weights, game(members), empty, full), truth, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "samples"), [(2, 4), (3, 8), (5, 32), (6, 40), (12, 300), (49, 512), (50, 102), (49, 4000)]
)
def test_coalitions_carry_the_weight_of_the_shapley_kernel(n, samples):
    members, weights = coalitions(n, samples, np.random.default_rng(1))
    assert len(members) <= samples - 2
    sizes = members.sum(1)
    assert sizes.min() >= 1 and sizes.max() <= n - 1
    kernel = {s: (n - 1) / (s * (n - s)) for s in range(1, n)}
    left_out = samples == 2 * n + 2 and n > 3
    assert weights.sum() == pytest.approx(kernel[1] * 2 if left_out else sum(kernel.values()))
    assert weights[sizes == 1].sum() == pytest.approx(kernel[1])
    complement = members.sum(0)
    np.testing.assert_array_equal(complement, (~members).sum(0))  # each coalition comes with its complement


def test_another_target_costs_no_pass_and_equals_all_classes():
    model, context = conv_net(side=64), Context()
    first, _ = explained(KernelSHAP, model, item(model, target=Target(0)), context, patch=8, samples=200)
    asked = model.passes
    second, _ = explained(KernelSHAP, model, item(model, target=Target(4)), context, patch=8, samples=200)
    both, _ = explained(KernelSHAP, model, item(model, target=Target(0, 4)), context, patch=8, samples=200)
    assert model.passes == asked
    assert first.arrays["all"].shape == (64, 5)
    np.testing.assert_array_equal(first.arrays["all"], second.arrays["all"])
    np.testing.assert_allclose(first.arrays["all"][:, 4], second.arrays["value"], rtol=1e-6)
    difference = first.arrays["value"] - second.arrays["value"]
    np.testing.assert_allclose(both.arrays["value"], difference, rtol=0, atol=1e-5)


def test_another_seed_is_another_sample():
    model = conv_net(side=64)
    one, other = (explained(KernelSHAP, model, item(model, seed=s), patch=8, samples=200)[0] for s in (0, 1))
    assert not np.array_equal(one.arrays["value"], other.arrays["value"])


def test_too_few_samples_are_refused_in_a_sentence():
    model = conv_net(side=64)
    with pytest.raises(InvalidField, match="64 regions, which need at least 130 samples") as refused:
        explained(KernelSHAP, model, item(model), patch=8, samples=64)
    assert "larger squares" in refused.value.hint
    with pytest.raises(InvalidField, match="two regions"):
        explained(KernelSHAP, model, item(model), patch=64, samples=64)
