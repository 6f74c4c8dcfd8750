"""Maps over pictures: aligned with the box, aligned with each other, readable in a preview."""

from __future__ import annotations

import numpy as np
import pytest
from drawing_samples import TRUST, image_map, record
from PIL import Image, ImageDraw

from fanlight import wire
from fanlight.drawing import colour, lettering, preview, scene, trust
from fanlight.drawing.scene import Style
from fanlight.errors import InvalidField


def test_the_picture_under_a_map_is_the_box_that_the_model_saw(cat):
    artifact = image_map(np.zeros((60, 60)), signed=True, box=[100, 40, 160, 100])
    assert np.array_equal(np.asarray(scene.picture(cat, artifact, size=60)), cat[40:100, 100:160])


def test_a_hot_pixel_lies_over_the_pixel_that_it_explains(cat):
    """The photograph has one white mark; the map is hot at its place on the grid of a box of twice the size."""
    black = np.zeros_like(cat)
    black[120:124, 200:204] = 255
    value = np.zeros((100, 100))
    value[(120 - 40) // 2 : (124 - 40) // 2, (200 - 100) // 2 : (204 - 100) // 2] = 1
    artifact = image_map(value, signed=True, box=[100, 40, 300, 240])
    seen = np.asarray(scene.picture(black, artifact, size=200)).max(axis=2) > 128
    hot = np.asarray(scene.overlay(black, artifact, size=200, style=Style(opacity=1)))[..., 1] < 150
    assert np.array_equal(np.argwhere(seen).mean(axis=0), [81.5, 101.5])
    assert np.abs(np.argwhere(hot).mean(axis=0) - [81.5, 101.5]).max() < 0.6


def test_opacity_mixes_map_and_grey_picture(cat):
    artifact = image_map(np.ones((10, 10)), signed=True, box=[0, 0, 10, 10])
    grey = np.asarray(scene.picture(cat, artifact, size=10).convert("L"), float)[..., None]
    for opacity in (0, 0.25, 1):
        got = np.asarray(scene.overlay(cat, artifact, size=10, style=Style(opacity=opacity)), float)
        assert np.abs(got - (grey * (1 - opacity) + colour.table("diverging")[254] * opacity)).max() <= 1


def test_a_card_has_the_picture_on_the_left_and_the_overlay_on_the_right(cat, edges):
    card = np.asarray(scene.beside(cat, edges, size=150))
    assert card.shape == (150, 302, 3)
    assert np.array_equal(card[:, :150], np.asarray(scene.picture(cat, edges, size=150)))
    assert np.array_equal(card[:, 152:], np.asarray(scene.overlay(cat, edges, size=150)))


def test_a_picture_far_larger_than_its_drawing_is_sampled_in_place(cat):
    large = np.asarray(Image.fromarray(cat).resize((4510, 3000), Image.Resampling.BICUBIC))
    box = [755.0, 0.0, 3755.0, 3000.0]
    small = np.asarray(
        scene.picture(cat, image_map(np.ones((4, 4)), signed=True, box=[v / 10 for v in box]), size=150), float
    )
    got = np.asarray(scene.picture(large, image_map(np.ones((4, 4)), signed=True, box=box), size=150), float)
    assert np.abs(got - small).mean() < 3


def test_a_view_is_read_strictly_and_may_hold_more():
    assert Style.of({"cmap": "grey", "lo": -1, "hi": 2, "opacity": 0.5, "tab": "x"}) == Style("grey", -1, 2, 0.5)
    assert Style.of({}) == Style()


@pytest.mark.parametrize(
    "view",
    [
        {"lo": "0"},
        {"hi": float("nan")},
        {"opacity": 2},
        {"opacity": True},
        {"cmap": "jet"},
        {"cmap": ["x"]},
        {"lo": 1, "hi": 1},
        {"hi": 1},
    ],
)
def test_a_view_that_says_nothing_drawable_is_refused(view):
    with pytest.raises(InvalidField):
        Style.of(view)


# --- preview


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"target_name": "<script>alert(1)</script> " * 20, "explainer_title": "x" * 500},
        {"target_name": "猫", "prediction": []},
        {"trust": wire.Trust(state="pending")},
    ],
)
def test_the_preview_has_its_size_whatever_the_names(cat, edges, changes):
    assert preview.preview(record(**changes), cat, edges).size == (1200, 630)


def test_the_preview_shows_picture_beside_overlay_and_the_tone_of_trust(cat, edges):
    good = np.asarray(preview.preview(record(), cat, edges))
    assert np.array_equal(good[:420, :420], np.asarray(scene.picture(cat, edges, size=420)))
    assert np.array_equal(good[:420, 424:844], np.asarray(scene.overlay(cat, edges, size=420)))
    low = np.asarray(preview.preview(record(trust=TRUST.model_copy(update={"above_floor": False})), cat, edges))
    green, amber = [0xE6, 0xF3, 0xEA], [0xFB, 0xF1, 0xDC]
    assert (good[588, 700:] != amber).any(axis=1).all() and (good[588, 40:400] == green).all(axis=1).any()
    assert (low[588, 40:400] == amber).all(axis=1).any()


def test_every_letter_that_is_drawn_has_a_glyph():
    face = lettering.font(20)
    missing = face.getmask("\U0001f9ff")
    blank = (missing.size, bytes(missing))
    for letter in lettering.GLYPHS:
        mask = face.getmask(letter)
        assert (mask.size, bytes(mask)) != blank, letter


@pytest.mark.parametrize(
    ("text", "drawn"), [("naïve Größe − ½", "naive Grosse - 12"), ("a\n b\t c", "a b c"), ("猫", ""), ("“x”…", "“x”…")]
)
def test_text_is_spelled_with_the_letters_there_are(text, drawn):
    assert lettering.drawable(text) == drawn


def test_text_that_does_not_fit_ends_in_an_ellipsis():
    draw, face = ImageDraw.Draw(Image.new("RGB", (1, 1))), lettering.font(20)
    for width in (0, 30, 200):
        text = lettering.fit(draw, "a name that goes on and on and on", face, width)
        assert text.endswith("…") and (draw.textlength(text, face) <= width or text == "…")
    assert lettering.fit(draw, "a name", face, 200) == "a name"


# --- trust


def test_the_badge_says_what_was_measured_and_what_it_means():
    good = trust.badge(TRUST)
    assert (good.tone, good.text) == ("good", "faithfulness +0.52 above random (+0.48 to +0.56)")
    low = trust.badge(TRUST.model_copy(update={"above_floor": False, "faithfulness": -0.001, "interval": {}}))
    assert (low.tone, low.text) == ("warn", "faithfulness 0.00: not above the random floor, do not read it")
    assert trust.badge(wire.Trust(state="running")).text == "not measured yet"
    assert (
        trust.badge(wire.Trust(state="unavailable", reason="Too close to the baseline")).meaning
        == "Too close to the baseline."
    )
