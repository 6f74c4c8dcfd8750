"""Baselines that depend on the seed or on what is hidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fanlight.errors import InvalidField
from fanlight.explainers import inpaint, maps
from fanlight.explainers.attribution.kernel_shap import KernelSHAP
from fanlight.explainers.attribution.occlusion import Occlusion
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, item, linear, photo


def solved(x, kept):
    """Laplace's equation from its definition, as one dense system in float64, (C, H, W)."""
    h, w = kept.shape
    a, b = np.zeros((h * w, h * w)), np.zeros((h * w, len(x)))
    for row in range(h):
        for column in range(w):
            n = row * w + column
            if kept[row, column]:
                a[n, n], b[n] = 1, x[:, row, column]
                continue
            for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if 0 <= r < h and 0 <= c < w:
                    a[n, n] += 1
                    a[n, r * w + c] -= 1
    return np.linalg.solve(a, b).T.reshape(x.shape)


def masks(side):
    rng = np.random.default_rng(0)
    squares = maps.squares((side, side), 8)
    hole = np.ones((side, side), dtype=bool)
    hole[side // 4 : -side // 4, side // 4 : -side // 4] = False
    corner = np.zeros((side, side), dtype=bool)
    corner[: side // 4, : side // 4] = True
    edge = np.ones((side, side), dtype=bool)
    edge[:, -5:] = False
    scattered = rng.random((side, side)) < 0.05
    return [rng.random(squares.max() + 1)[squares] < share for share in (0.2, 0.5, 0.8)] + [
        hole,
        corner,
        edge,
        scattered,
    ]


def test_hidden_pixels_are_harmonic_and_shown_ones_untouched():
    side = 36  # no power of two
    x = photo(3, side).astype(np.float32).transpose(2, 0, 1)
    kept = np.stack(masks(side))
    found = inpaint.harmonic(torch.from_numpy(x), torch.from_numpy(kept)).numpy()
    for filled, shown in zip(found, kept, strict=True):
        np.testing.assert_array_equal(filled[:, shown], x[:, shown])
        off = (filled - solved(x.astype(float), shown))[:, ~shown] / 255
        assert np.sqrt((off**2).mean()) < 0.015 and np.abs(off).max() < 0.05


def test_a_ramp_is_continued_and_a_plain_picture_stays_plain():
    ramp = torch.arange(48.0).expand(1, 32, 48)
    kept = torch.ones(1, 32, 48, dtype=torch.bool)
    kept[0, 8:24, 16:32] = False
    np.testing.assert_allclose(inpaint.harmonic(ramp, kept)[0], ramp, atol=0.5)
    plain = torch.full((3, 17, 9), 2.5)
    np.testing.assert_allclose(
        inpaint.harmonic(plain, torch.rand(2, 17, 9) < 0.3), plain.expand(2, -1, -1, -1), rtol=1e-5
    )


def test_where_nothing_is_shown_it_is_the_mean_colour_and_where_all_is_shown_the_picture():
    x = torch.from_numpy(photo(1).astype(np.float32).transpose(2, 0, 1).copy())
    nothing, everything = torch.zeros(1, 32, 32, dtype=torch.bool), torch.ones(1, 32, 32, dtype=torch.bool)
    np.testing.assert_allclose(inpaint.harmonic(x, nothing)[0], x.mean((1, 2), keepdim=True).expand_as(x), rtol=1e-5)
    np.testing.assert_array_equal(inpaint.harmonic(x, everything)[0], x)
    single = torch.full((3, 1, 1), 4.0)
    np.testing.assert_array_equal(inpaint.harmonic(single, torch.zeros(1, 1, 1, dtype=torch.bool))[0], single)


def test_noise_is_drawn_from_the_seed_between_black_and_white():
    model = conv_net()
    one, other = (maps.baseline(model, item(model, seed=s), "noise") for s in (0, 1))
    assert not torch.equal(one, other)
    assert torch.equal(one, maps.baseline(model, item(model, 5, seed=0), "noise"))
    black, white = model.colour((0.0,) * 3), model.colour((255.0,) * 3)
    share = (one - black) / (white - black)
    assert 0 <= share.min() and share.max() <= 1
    assert share.mean() == pytest.approx(0.5, abs=0.02) and share.var() == pytest.approx(1 / 12, abs=0.005)


@pytest.mark.parametrize("baseline", ["noise", "inpaint"])
def test_of_an_additive_model_a_square_is_worth_what_is_put_in_its_place(baseline):
    model = linear()
    one = item(model, target=Target(1), seed=3)
    (found,) = explained(Occlusion, model, one, window=8, stride=8, baseline=baseline)
    weight = model.net.weight[1]
    for row, column in ((0, 0), (8, 16), (24, 24)):
        kept = torch.ones(1, 32, 32, dtype=torch.bool)
        kept[0, row : row + 8, column : column + 8] = False
        filled = inpaint.harmonic(one.x, kept)[0] if baseline == "inpaint" else maps.baseline(model, one, "noise")
        worth = (weight * (one.x - torch.where(kept, one.x, filled))).sum()
        assert found.arrays["value"][row, column] == pytest.approx(float(worth), rel=1e-3, abs=1e-4)


def test_answers_are_kept_for_the_seed_only_where_they_depend_on_it():
    model, context = conv_net(), Context()
    for baseline, again in (("grey", False), ("inpaint", False), ("noise", True)):
        explained(Occlusion, model, item(model, seed=0), context, baseline=baseline)
        asked = model.passes
        explained(Occlusion, model, item(model, seed=1), context, baseline=baseline)
        assert (model.passes > asked) is again, baseline


def test_shapley_values_add_up_with_in_painting_too():
    model = conv_net(side=64)
    regions, _ = explained(KernelSHAP, model, item(model), patch=16, samples=100, baseline="inpaint")
    gain = regions.meta["f_x"] - regions.meta["f_baseline"]
    assert regions.arrays["value"].sum() == pytest.approx(gain, rel=1e-4)


def test_a_window_larger_than_the_picture_is_refused():
    model = conv_net()
    with pytest.raises(InvalidField, match="128 px is larger than the model's input, 32 by 32 px"):
        explained(Occlusion, model, item(model), window=128)
