from __future__ import annotations

import numpy as np
import pytest
import torch

from fanlight.explainers import evaluate, maps
from support.explaining import Context, conv_net, finish, item


@pytest.mark.parametrize(("total", "limit"), [(1, 8), (3, 8), (8, 8), (9, 8), (50, 8), (5, 1), (2, 0)])
def test_chunks_cover_every_row_once_with_one_shape(total, limit):
    found = list(evaluate.chunks(total, limit))
    assert [n for start, stop, _ in found for n in range(start, stop)] == list(range(total))
    assert len({rows for _, _, rows in found}) == 1
    assert all(stop - start <= rows <= max(limit, 1) for start, stop, rows in found)


@pytest.mark.parametrize("total", range(9, 130))
def test_no_other_size_of_a_chunk_costs_less_with_its_padding(total):
    found = list(evaluate.chunks(total, 8))
    rows = found[0][2]
    assert 4 < rows <= 8
    cost = {n: -(-total // n) * (n + evaluate.PASS) for n in range(5, 9)}
    assert len(found) * (rows + evaluate.PASS) == cost[rows] == min(cost.values())


def test_a_series_of_gradients_holds_no_more_than_it_may(monkeypatch):
    model = conv_net()
    with torch.enable_grad():
        out = model.net[3](model.net[2](model.net[1](model.net[0](torch.zeros(1, 3, 32, 32)))))
    assert 4 * out.numel() < model.held < 4 * (3 * 32 * 32 + 3 * 8 * 16 * 16 + 3 * 12 * 8 * 8 + 100)
    assert evaluate.series_rows(model, Context(8)) == 8, "small activations: a whole chunk"
    monkeypatch.setattr(evaluate, "HELD", 3 * model.held)
    assert evaluate.series_rows(model, Context(8)) == 3
    monkeypatch.setattr(evaluate, "HELD", 1)
    assert evaluate.series_rows(model, Context(8)) == 2, "a quarter of a chunk, whatever it holds"


def test_a_single_picture_costs_a_single_pass():
    assert list(evaluate.chunks(1, 8)) == [(0, 1, 1)]


@pytest.mark.parametrize("total", [1, 5, 19])
def test_logits_equal_those_of_each_picture_alone(total):
    model = conv_net()
    pictures = torch.stack([item(model, n).x for n in range(total)])
    found = finish(evaluate.logits(model, lambda a, b: pictures[a:b], total, Context(4)))
    alone = torch.cat([model.logits(p[None]) for p in pictures])
    torch.testing.assert_close(found, alone, rtol=1e-4, atol=1e-5)
    assert not found.requires_grad


def test_pictures_are_made_chunk_by_chunk():
    model, asked = conv_net(), []

    def picture(start, stop):
        asked.append((start, stop))
        return item(model).x.expand(stop - start, -1, -1, -1)

    run = evaluate.logits(model, picture, 20, Context(8))
    next(run)
    assert asked == [(0, 5)]
    finish(run)
    assert asked == [(0, 5), (5, 10), (10, 15), (15, 20)]


def test_what_was_evaluated_once_is_not_evaluated_again():
    def compute():
        yield evaluate.Step(1)
        calls.append(1)
        return "result"

    context, calls = Context(), []
    assert [finish(evaluate.once("key", context, compute)) for _ in range(2)] == ["result", "result"]
    assert len(calls) == 1


def test_baselines_are_what_they_say():
    model = conv_net()
    one = item(model, 2)
    flat = {"grey": 127.5, "black": 0, "white": 255}
    for name, level in flat.items():
        assert torch.equal(maps.baseline(model, one, name), model.colour((level,) * 3).expand_as(one.x))
    mean = maps.baseline(model, one, "mean")
    torch.testing.assert_close(mean[:, 3, 4], one.x.mean((1, 2)))
    blur = maps.baseline(model, one, "blur")
    assert blur.shape == one.x.shape
    assert blur.std() < 0.9 * one.x.std()
    torch.testing.assert_close(blur.mean((1, 2)), one.x.mean((1, 2)), rtol=0, atol=0.05)


def test_squares_number_the_pixels_row_by_row():
    label = maps.squares((5, 7), 3)
    assert label.max() == 5
    np.testing.assert_array_equal(label[0], [0, 0, 0, 1, 1, 1, 2])
    np.testing.assert_array_equal(label[:, 0], [0, 0, 0, 3, 3])
