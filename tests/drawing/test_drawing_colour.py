"""Colour maps: what they mean, that they are even, and that text on the page can be read."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fanlight.drawing import colour, preview
from fanlight.drawing.curves import INKS, SERIES
from fanlight.drawing.page import CSS
from fanlight.errors import InvalidField


def hexes(row: np.ndarray) -> str:
    return "#" + bytes(row).hex().upper()


def test_the_diverging_map_runs_from_against_through_near_white_to_for():
    table = colour.table("diverging")
    assert [hexes(table[i]) for i in (0, 127, 254)] == ["#2B6CB0", "#F4F3EF", "#B2432F"]


def test_both_halves_of_the_diverging_map_have_the_same_weight():
    lightness = colour.oklab(colour.table("diverging") / 255)[:, 0]
    assert np.abs(lightness - lightness[::-1]).max() < 0.02
    assert (np.diff(lightness[:128]) > -0.002).all()


def test_the_sequential_map_is_perceptually_even_and_rises_in_lightness():
    lab = colour.oklab(colour.table("sequential") / 255)
    steps = np.linalg.norm(
        np.diff(lab[::6], axis=0), axis=1
    )  # over six, because one step is near the rounding to 8 bits
    assert steps.std() / steps.mean() < 0.06
    assert (np.diff(lab[::3, 0]) > 0).all()


def test_the_sequential_map_needs_no_clipping():
    srgb = colour.from_oklab(colour.MAPS["sequential"]())
    assert srgb.min() > -0.01 and srgb.max() < 1.01


def test_oklab_agrees_with_published_values():
    # B. Ottosson 2020: white is (1, 0, 0); sRGB red is (0.628, 0.225, 0.126)
    assert np.allclose(colour.oklab(np.ones(3)), [1, 0, 0], atol=1e-3)
    assert np.allclose(colour.oklab(np.array([1.0, 0, 0])), [0.628, 0.225, 0.126], atol=1e-3)
    rgb = np.random.default_rng(0).random((50, 3))
    assert np.allclose(colour.from_oklab(colour.oklab(rgb)), rgb, atol=1e-6)


def test_values_are_looked_up_and_clipped_at_the_ends():
    got = colour.colours(np.array([-9.0, -1, 0, 1, 9]), -1, 1, "diverging")
    assert [hexes(c) for c in got] == ["#2B6CB0", "#2B6CB0", "#F4F3EF", "#B2432F", "#B2432F"]


@pytest.mark.parametrize("name", list(colour.MAPS))
def test_stops_span_the_map(name):
    stops = colour.stops(name)
    assert (stops[0], stops[-1]) == (hexes(colour.table(name)[0]), hexes(colour.table(name)[-1])) and len(stops) == 9


def test_an_unknown_map_is_named_with_those_there_are():
    with pytest.raises(InvalidField) as caught:
        colour.table("jet")
    assert caught.value.allowed == ["diverging", "sequential", "grey"]


def contrast(a: str, b: str) -> float:
    """WCAG 2.2 contrast ratio."""

    def luminance(hex: str) -> float:
        c = colour.rgb(hex)
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    hi, lo = sorted((luminance(a), luminance(b)), reverse=True)
    return (hi + 0.05) / (lo + 0.05)


def tokens(scheme: int) -> dict[str, str]:
    """CSS variables of the share page: 0 light, 1 dark."""
    return dict(
        re.findall(r"--([\w-]+): (#\w{6})", CSS.split("@media (prefers-color-scheme: dark)")[scheme].split("* {")[0])
    )


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("ink", "paper"), ("ink", "card"), ("ink-2", "paper"), ("ink-2", "card"), ("ink-2", "quiet-soft"),
        ("accent", "card"), ("good", "good-soft"), ("warn", "warn-soft"),
    ],
)  # fmt: skip
def test_text_on_the_page_has_the_contrast_that_wcag_asks_for(scheme, text, back):
    assert contrast(tokens(scheme)[text], tokens(scheme)[back]) >= 4.5


@pytest.mark.parametrize("dark", [False, True])
def test_names_of_curves_have_contrast(dark):
    ink = INKS[dark]
    assert all(contrast(c, ink["card"]) >= 4.5 for c in (*SERIES[dark], ink["quiet"]))


def test_the_preview_has_contrast():
    assert contrast(preview.QUIET, preview.PAPER) >= 4.5
    assert all(contrast(ink, back) >= 4.5 for back, ink in preview.TONES.values())
