from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fanlight.explainers.attribution.edges import Edges
from support.explaining import conv_net, explained, item


def test_it_equals_a_loop_in_float64():
    model = conv_net()
    one = item(model, 3)
    (found,) = explained(Edges, model, one, smoothing=0)
    grey = np.pad((one.image / 255.0) @ [0.2126, 0.7152, 0.0722], 1, mode="edge")
    kernel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    twin = np.zeros((32, 32))
    for row in range(32):
        for column in range(32):
            around = grey[row : row + 3, column : column + 3]
            twin[row, column] = np.hypot((around * kernel).sum(), (around * kernel.T).sum())
    np.testing.assert_allclose(found.arrays["value"], twin, atol=1e-6)


def test_a_step_is_found_where_it_is_and_a_plain_picture_has_none():
    model = conv_net()
    picture = np.zeros((32, 32, 3), dtype=np.uint8)
    picture[:, 20:] = 255
    (found,) = explained(Edges, model, replace(item(model), image=picture), smoothing=0)
    assert found.arrays["value"][:, 19:21] == pytest.approx(0.5)
    assert not np.delete(found.arrays["value"], [19, 20], axis=1).any()
    (smooth,) = explained(Edges, model, replace(item(model), image=picture), smoothing=2)
    assert smooth.arrays["value"].argmax(1).tolist() == pytest.approx([19.5] * 32, abs=0.5)
    (plain,) = explained(Edges, model, replace(item(model), image=np.full_like(picture, 90)))
    assert plain.arrays["value"].max() < 1e-6


def test_the_model_is_not_asked():
    model = conv_net()
    explained(Edges, model, item(model))
    assert model.passes == 0
