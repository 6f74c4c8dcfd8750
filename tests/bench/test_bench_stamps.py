"""Stamps: the mask is where the stamp is, and a composite is kept only where the stamp is what changed the answer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.bench import _table, stamps
from fanlight.errors import NotFound


class Colours(nn.Module):
    """The mean of each colour: the largest is the answer."""

    def forward(self, x):
        return x.mean((2, 3)) + torch.tensor([0.15, 0.0, 0.0])


@pytest.fixture(scope="module")
def model():
    scaled = Preprocessing((64, 64), crop=0.875)
    return TorchImageClassifier(Colours(), classes=["red", "green", "blue"], preprocessing=scaled)


def stamp(colour):
    image = Image.new("RGBA", (80, 80), (0, 0, 0, 0))
    image.paste(Image.new("RGBA", (60, 60), colour), (10, 10))
    return image


def test_the_mask_is_where_the_stamp_is(model):
    photo = np.full((100, 140, 3), (255, 0, 0), dtype=np.uint8)
    whole, grey, mask = stamps.stamped(model, photo, stamp((0, 0, 255, 255)), np.random.default_rng(0))
    seen = model.pixels(whole)
    assert 0.02 < mask.mean() < 0.5 and mask.shape == (64, 64)
    assert (seen[mask][:, 2] > seen[mask][:, 0]).mean() > 0.95
    assert (seen[~mask][:, 0] > seen[~mask][:, 2]).mean() > 0.95
    assert (abs(model.pixels(grey)[mask].astype(int) - 128) < 60).mean() > 0.9


def test_the_share_of_a_map_on_the_stamp():
    mask = np.zeros((4, 4), dtype=bool)
    mask[:2] = True
    assert stamps.inside(mask.astype(float), mask) == 1
    assert stamps.inside(np.ones((4, 4)), mask) == 0.5
    assert stamps.inside(np.where(mask, -1.0, 1.0), mask) == 0
    assert math.isnan(stamps.inside(-np.ones((4, 4)), mask))


def test_only_what_the_stamp_changed_is_kept(model, tmp_path):
    for n in range(3):
        stamp((0, 0, 255, 255)).save(tmp_path / f"blue-{n}.png")
    stamp((128, 128, 128, 255)).save(tmp_path / "grey.png")
    stamp((255, 0, 0, 255)).save(tmp_path / "red.png")
    Image.new("RGB", (80, 80)).save(tmp_path / "no-alpha.png")
    found = stamps.stamps(tmp_path)
    assert len(found) == 5
    kept, tried = stamps.chosen_composites(model, found, 10)
    assert tried == 5 and kept and {c.stamp.partition("-")[0] for c in kept} == {"blue"}


def test_chance_is_the_share_of_the_picture(model):
    mask = np.zeros((8, 8), dtype=bool)
    mask[:2] = True
    given = [stamps.Composite(np.zeros((8, 8, 3), np.uint8), mask, str(n)) for n in range(4)]
    told = stamps.compared(np.array([0.25, 0.26, 0.24, math.nan]), given)
    assert told["n"] == 3 and told["empty"] == 1
    assert told["ratio"] == pytest.approx(1) and "not told apart" in told["words"]
    assert stamps.compared(np.full(4, 0.75), given)["words"] == "more than chance"
    assert "less" in stamps.compared(np.full(4, 0.1), given)["words"]


def test_without_stamps_it_says_what_to_install(tmp_path):
    with pytest.raises(NotFound) as caught:
        stamps.stamps(tmp_path / "none")
    assert "apt-get install tuxpaint-stamps-default" in caught.value.hint


def test_the_document_has_a_place(root):
    text = (root / "docs" / "measurements.md").read_text()
    assert _table.replaced(text, "stamps", "rows") != text
