from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fanlight.explainers import maps
from fanlight.explainers.attribution.expected_gradients import ExpectedGradients
from fanlight.explainers.attribution.integrated_gradients import IntegratedGradients
from fanlight.explainers.base import Target
from support.explaining import conv_net, explained, item, linear, naive

BUILT_IN = ("grey", "black", "white", "mean", "blur")


@pytest.mark.parametrize("around", ["black", "all"])
def test_it_equals_a_loop_over_the_same_draws_in_float64(around):
    model = conv_net(activation=nn.Tanh)
    one = item(model, target=Target(2, 0), seed=7)
    (found,) = explained(ExpectedGradients, model, one, samples=11, noise=0.3, around=around)
    f, x = naive(model, one.target), one.x.double()
    rng = np.random.default_rng(7)
    total, values = torch.zeros_like(x), []
    for n in range(11):
        centre = maps.baseline(model, one, BUILT_IN[n % 5] if around == "all" else around).double()
        place = rng.random()
        b = centre + 0.3 * 255 / 64 * torch.from_numpy(rng.standard_normal(tuple(x.shape), dtype=np.float32))
        at = (b + place * (x - b)).requires_grad_()
        total += (x - b) * torch.autograd.grad(f(at), at)[0]
        values.append(float(f(b)))
    twin = (total / 11).sum(0).numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-5 * np.abs(twin).max())
    assert found.meta["f_baseline"] == pytest.approx(np.mean(values), rel=1e-4)
    missed = abs(twin.sum() - float(f(x)) + np.mean(values)) / abs(float(f(x)) - np.mean(values))
    assert found.meta["completeness_error"] == pytest.approx(missed, rel=1e-3, abs=1e-4)


def test_of_an_additive_model_it_is_exact_for_the_baselines_drawn():
    model = linear()
    (found,) = explained(ExpectedGradients, model, item(model, target=Target(0, 2)), around="all")
    assert found.meta["completeness_error"] < 1e-4
    assert found.meta["completeness_standard_error"] < 1e-4


def test_with_one_baseline_and_no_noise_it_tends_to_integrated_gradients():
    model = conv_net()
    (exact,) = explained(IntegratedGradients, model, item(model), steps=512, tolerance=0)
    truth = exact.arrays["value"]
    errors = []
    for samples in (16, 256):
        found = [
            explained(ExpectedGradients, model, item(model, seed=s), samples=samples, noise=0)[0].arrays["value"]
            for s in range(3)
        ]
        errors.append(np.sqrt(np.mean([(v - truth) ** 2 for v in found]) / np.mean(truth**2)))
    assert errors[1] < errors[0] / 2
    assert errors[1] < 0.1


def test_the_completeness_error_is_within_a_few_of_its_standard_errors():
    model = conv_net()
    inside = 0
    for seed in range(20):
        (found,) = explained(ExpectedGradients, model, item(model, seed=seed), samples=64)
        inside += found.meta["completeness_error"] <= 2 * found.meta["completeness_standard_error"]
    assert inside >= 16, "two standard errors hold about nineteen of twenty"
