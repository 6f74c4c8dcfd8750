from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fanlight.explainers.attribution.saliency import Saliency
from fanlight.explainers.attribution.smooth_grad import SmoothGrad
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, item, linear, naive


@pytest.mark.parametrize("average", ["gradient", "squared"])
@pytest.mark.parametrize("channels", ["max", "sum"])
def test_it_equals_a_loop_over_the_same_noise_in_float64(average, channels):
    model = conv_net(activation=nn.Tanh)
    one = item(model, target=Target(2, 0), seed=7)
    (found,) = explained(SmoothGrad, model, one, samples=11, noise=0.3, average=average, channels=channels)
    f, x = naive(model, one.target), one.x.double()
    sigma = 0.3 * float(one.x.max() - one.x.min())
    rng = np.random.default_rng(7)
    total = torch.zeros_like(x)
    for _ in range(11):
        at = (x + sigma * torch.from_numpy(rng.standard_normal(tuple(x.shape), dtype=np.float32))).requires_grad_()
        (slope,) = torch.autograd.grad(f(at), at)
        total += slope**2 if average == "squared" else slope
    mean = (total / 11).abs()
    twin = (mean.amax(0) if channels == "max" else mean.sum(0)).numpy()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-5 * twin.max())
    assert found.meta["sigma"] == pytest.approx(sigma)


def test_without_noise_it_is_the_gradient():
    model = conv_net()
    one = item(model)
    (found,) = explained(SmoothGrad, model, one, samples=4, noise=0)
    (plain,) = explained(Saliency, model, one)
    np.testing.assert_allclose(found.arrays["value"], plain.arrays["value"], rtol=1e-4, atol=1e-7)
    assert found.meta["standard_error"] == pytest.approx(0, abs=1e-5)


def test_of_an_additive_model_noise_changes_nothing():
    model = linear()
    (found,) = explained(SmoothGrad, model, item(model, target=Target(1)), samples=8)
    np.testing.assert_allclose(found.arrays["value"], model.net.weight[1].abs().amax(0).numpy(), rtol=1e-5)


def test_the_standard_error_is_how_far_maps_of_other_seeds_scatter():
    model = conv_net()
    maps, errors = [], []
    for seed in range(12):
        (found,) = explained(SmoothGrad, model, item(model, seed=seed), samples=16, channels="sum", noise=0.5)
        maps.append(found.arrays["value"])
        errors.append(found.meta["standard_error"])
    mean = np.mean(maps, 0)
    scatter = np.sqrt(((np.stack(maps) - mean) ** 2).sum((1, 2)).mean() / (mean**2).sum())
    assert scatter == pytest.approx(np.mean(errors), rel=0.5)


def test_what_is_shown_meanwhile_is_the_mean_so_far():
    model, context = conv_net(), Context(2)
    run = SmoothGrad().run(model, [item(model, seed=3)], SmoothGrad.Params(samples=6), context)
    first = next(run)
    shown = first.preview()
    (alone,) = explained(SmoothGrad, model, item(model, seed=3), samples=2)
    np.testing.assert_allclose(shown.arrays["value"], alone.arrays["value"], rtol=1e-4, atol=1e-7)
    assert first.done == pytest.approx(2 / 6)
    run.close()
