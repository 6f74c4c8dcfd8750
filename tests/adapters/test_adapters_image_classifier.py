from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from fanlight.adapters.base import Box
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.errors import InvalidField
from support.explaining import STRUCTURE, conv_net, photo

LITE = Preprocessing((224, 224), crop=0.875, interpolation="bicubic", mean=(127.0,) * 3, std=(128.0,) * 3)


@pytest.mark.parametrize(
    ("preprocessing", "width", "height", "box"),
    [
        (LITE, 640, 480, (110, 30, 530, 450)),
        (LITE, 256, 256, (16, 16, 240, 240)),
        (LITE, 1, 1, (0, 0, 1, 1)),
        (LITE, 5000, 1, (2500, 0, 2501, 1)),
        (Preprocessing((100, 200)), 300, 300, (0, 75, 300, 225)),
        (Preprocessing((100, 200), crop=None), 300, 301, (0, 0, 300, 301)),
    ],
)
def test_the_view_is_the_centred_part(preprocessing, width, height, box):
    assert preprocessing.view(width, height) == Box(*box)


def test_the_view_stays_inside_and_keeps_the_proportions():
    for width in range(1, 90, 4):
        for height in range(1, 90, 4):
            box = LITE.view(width, height)
            assert 0 <= box.x0 < box.x1 <= width and 0 <= box.y0 < box.y1 <= height
            assert box.x1 - box.x0 == box.y1 - box.y0


def test_prepare_is_crop_scale_and_normalise_of_exactly_the_view():
    model = conv_net()
    model.preprocessing = Preprocessing((32, 32), 0.8, "bicubic", mean=(100, 110, 120), std=(50, 60, 70))
    picture = np.asarray(Image.fromarray(photo(1, 64)).resize((90, 70)))
    box = model.view(90, 70)
    part = Image.fromarray(picture).crop(tuple(int(v) for v in box)).resize((32, 32), Image.Resampling.BICUBIC)
    expected = (np.asarray(part, dtype=np.float64) - [100, 110, 120]) / [50, 60, 70]
    np.testing.assert_allclose(model.prepare(picture).numpy(), expected.transpose(2, 0, 1), atol=1e-6)
    np.testing.assert_array_equal(model.pixels(picture), np.asarray(part))


def test_a_colour_is_what_prepare_makes_of_a_plain_picture():
    model = conv_net()
    model.preprocessing = Preprocessing((32, 32), mean=(1, 2, 3), std=(4, 5, 6))
    plain = np.broadcast_to(np.array([10, 200, 90], dtype=np.uint8), (40, 50, 3)).copy()
    torch.testing.assert_close(model.prepare(plain), model.colour((10, 200, 90)).expand(3, 32, 32))


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": (0, 10)},
        {"size": (224,)},
        {"size": (10.5, 20)},
        {"crop": 0},
        {"crop": 1.5},
        {"interpolation": "best"},
        {"std": (0.0, 1, 1)},
        {"mean": (float("nan"), 0, 0)},
        {"mean": (0, 0)},
    ],
)
def test_preprocessing_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidField) as refused:
        Preprocessing(**{"size": (32, 32), **wrong})
    assert refused.value.message.endswith(".")


def test_the_network_is_frozen_and_in_eval_mode():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = TorchImageClassifier(net.train(), ["a", "b", "c", "d"], Preprocessing((8, 8)))
    assert not any(m.training for m in model.net.modules())
    assert not any(p.requires_grad for p in model.net.parameters())
    assert model.capabilities - STRUCTURE == {"gradients"}


class Flattening(nn.Module):
    """As many networks are written: `view` needs channels outermost in memory."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4 * 6 * 6, 2)

    def forward(self, x):
        x = self.conv(x)
        return self.last(x.view(len(x), -1))


def test_a_network_that_flattens_by_view_works_and_memory_order_changes_nothing():
    net, x = Flattening(), torch.rand(2, 3, 8, 8)
    expected = net(x)
    torch.testing.assert_close(TorchImageClassifier(net, ["a", "b"], Preprocessing((8, 8))).logits(x), expected)
    plain = conv_net()
    before = plain.logits(torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    last = TorchImageClassifier(plain.net, plain.classes, plain.preprocessing, "3", channels_last=True)
    after = last.logits(torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    torch.testing.assert_close(after, before)
    assert last.digest == plain.digest


def test_features_and_logits_come_from_one_graph_and_the_hook_goes():
    model = conv_net()
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 32, 32)).astype(np.float32)).requires_grad_()
    logits, grid = model.features(x)
    torch.testing.assert_close(logits, model.logits(x))
    torch.testing.assert_close(grid, model.net[:4](x))
    (slope,) = torch.autograd.grad(logits[0, 1], grid)
    torch.testing.assert_close(slope[0], (model.net[6].weight[1] / 64)[:, None, None].expand(12, 8, 8))
    assert not model.net[3]._forward_hooks
    with pytest.raises(RuntimeError):
        model.features(torch.zeros(1, 5, 32, 32))
    assert not model.net[3]._forward_hooks


def test_a_place_that_is_no_grid_is_refused_in_a_sentence():
    model = conv_net()
    model.features_at = "5"  # after flattening
    with pytest.raises(InvalidField, match="must run once and put out a grid"):
        model.features(torch.zeros(1, 3, 32, 32))
    model.features_at = None
    assert model.capabilities - STRUCTURE == {"gradients", "embedding"}
    with pytest.raises(InvalidField, match="names no module"):
        model.features(torch.zeros(1, 3, 32, 32))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"features_at": "layer9"}, "no module “layer9”"),
        ({"classes": ["a", "a"]}, "all different"),
        ({"classes": ["only"]}, "at least two"),
        ({"classes": ["a", " "]}, "none empty"),
    ],
)
def test_what_does_not_fit_the_network_is_refused(wrong, sentence):
    with pytest.raises(InvalidField, match=sentence):
        TorchImageClassifier(
            **{"net": nn.Flatten(), "classes": ["a", "b"], "preprocessing": Preprocessing((8, 8)), **wrong}
        )


def test_the_digest_names_all_that_changes_an_answer():
    def made(**change):
        model = conv_net(change.pop("seed", 0))
        given = {"classes": model.classes, "preprocessing": model.preprocessing, "features_at": "3", **change}
        return TorchImageClassifier(model.net, **given).digest

    same = made()
    assert made() == same and made(name="Another name", card="text") == same
    changed = [
        made(seed=1),
        made(classes=["v", "w", "x", "y", "z"]),
        made(preprocessing=Preprocessing((32, 32), crop=0.9, mean=(127.5,) * 3, std=(64.0,) * 3)),
        made(features_at="1"),
        made(code="def load(): ..."),
    ]
    assert len({same, *changed}) == 6
