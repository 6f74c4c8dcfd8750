from __future__ import annotations

import numpy as np
import pytest
import torch

from fanlight.errors import InvalidField
from fanlight.explainers.attribution.rise import RISE, Masks
from fanlight.explainers.base import Target
from support.explaining import Context, conv_net, explained, finish, item, linear, naive


def mask_twin(grid, shift, size, cells):
    """One mask, pixel by pixel: the grid enlarged bilinearly to (cells + 1) cells of pixels, then cut."""
    cell = [-(-n // cells) for n in size]
    out = np.zeros(size)
    for row in range(size[0]):
        for column in range(size[1]):
            at = []
            for place, offset, c in ((row, shift[0], cell[0]), (column, shift[1], cell[1])):
                v = (place + offset + 0.5) * cells / ((cells + 1) * c) - 0.5
                at.append(min(max(v, 0), cells - 1))
            y, x = at
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, cells - 1), min(x0 + 1, cells - 1)
            top = grid[y0, x0] * (1 - x + x0) + grid[y0, x1] * (x - x0)
            bottom = grid[y1, x0] * (1 - x + x0) + grid[y1, x1] * (x - x0)
            out[row, column] = top * (1 - y + y0) + bottom * (y - y0)
    return out


@pytest.mark.parametrize("target", [Target(0), Target(3, 1)], ids=str)
def test_it_equals_the_sums_in_float64(target):
    model = conv_net()
    one = item(model, target=target, seed=4)
    (found,) = explained(RISE, model, one, samples=32, cells=5, share=0.4, baseline="black")
    f, x, black = naive(model, target), one.x.double(), model.colour((0, 0, 0)).double()
    rng = np.random.default_rng(4)
    grids, shifts = rng.random((32, 5, 5)) < 0.4, rng.integers(0, (7, 7), (32, 2))
    masks = np.stack([mask_twin(g.astype(float), s, (32, 32), 5) for g, s in zip(grids, shifts, strict=True)])
    values = np.array([float(f(black + torch.from_numpy(m) * (x - black))) for m in masks])
    mean = (masks * values[:, None, None]).sum(0) / masks.sum(0)
    twin = mean - values.mean()
    np.testing.assert_allclose(found.arrays["value"], twin, rtol=1e-3, atol=1e-4 * np.abs(twin).max())
    f_m = values[:, None, None]
    moved = masks * (f_m - mean) / masks.mean(0) - (f_m - values.mean())
    error = np.sqrt((moved**2).sum(0)) / 32
    assert found.meta["standard_error"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-3)


def test_masks_show_the_share_and_are_the_same_in_any_chunks():
    masks = Masks(RISE.Params(samples=2000, cells=4, share=0.3), (30, 41), 0)
    like = torch.zeros(1)
    whole = masks.make(0, 2000, like)
    assert whole.shape == (2000, 30, 41) and whole.min() >= 0 and whole.max() <= 1
    np.testing.assert_allclose(whole.mean(0), 0.3, atol=0.05)
    torch.testing.assert_close(torch.cat([masks.make(0, 3, like), masks.make(3, 10, like)]), whole[:10], rtol=0, atol=0)


def test_the_standard_error_is_how_far_maps_of_other_seeds_scatter():
    model = linear(scale=0.01)
    found = [explained(RISE, model, item(model, target=Target(1), seed=s), samples=256)[0] for s in range(16)]
    maps = np.stack([a.arrays["value"] for a in found])
    scatter = np.sqrt(maps.var(0, ddof=1).mean())
    assert scatter == pytest.approx(np.mean([a.meta["standard_error"] for a in found]), rel=0.35)


def test_it_finds_the_half_that_counts():
    model = linear()
    weight = model.net.weight
    with torch.no_grad():
        weight[:] = 0
        weight[1, :, :, :16] = 0.1
    one = item(model, target=Target(1))
    one.x.abs_().add_(0.5)  # brighter than the baseline everywhere
    (found,) = explained(RISE, model, one, samples=2048)
    value = found.arrays["value"]
    assert value[:, :12].min() > 0 and value[:, :12].mean() > 4 * np.abs(value[:, 24:]).mean()
    assert found.meta["spread"] > 4 * found.meta["standard_error"]


def test_another_target_costs_no_pass_and_what_is_shown_meanwhile_changes_nothing():
    model, context = conv_net(), Context()
    run = RISE().run(model, [item(model, target=Target(0))], RISE.Params(samples=64), context)
    looked = 0

    def looking():
        nonlocal looked
        try:
            while True:
                step = next(run)
                if step.preview is not None:
                    assert step.preview().arrays["value"].shape == (32, 32)
                    looked += 1
                yield step
        except StopIteration as end:
            return end.value

    ((first,),) = finish(looking())
    assert looked == 8
    (plain,) = explained(RISE, model, item(model, target=Target(0)), samples=64)
    np.testing.assert_allclose(first.arrays["value"], plain.arrays["value"], rtol=0, atol=1e-6)
    asked = model.passes
    explained(RISE, model, item(model, target=Target(3)), context, samples=64)
    assert model.passes == asked


def test_more_cells_than_pixels_are_refused():
    model = conv_net(side=16)
    with pytest.raises(InvalidField, match="20 cells along a side are more than the 16 pixels"):
        explained(RISE, model, item(model), cells=20)
