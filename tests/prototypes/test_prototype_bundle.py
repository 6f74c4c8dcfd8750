"""Bundles of prototype classifiers: what is written is read, and what does not fit is a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fanlight_models.prototypes import bundle
from support.prototypes import CLASSES, small, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "small")


def test_what_is_written_is_read(folder: Path) -> None:
    made, found = small(), bundle.read(folder)
    assert found.sources == made.sources and found.about["split"] == "train"
    x = made.x[:3]
    with torch.inference_mode():
        one, two = made.model(x), found.model(x)
    assert torch.equal(one.logits, two.logits) and torch.equal(one.token, two.token)
    assert torch.equal(found.nearest.image, made.nearest.image) and torch.equal(found.nearest.token, made.nearest.token)
    source = found.sources[0]
    shown = found.picture(source.image)
    assert shown.shape == (32, 32, 3)
    assert np.abs(shown.astype(int) - made.pictures[source.image]).mean() < 12  # a JPEG of noise
    assert found.pictures[source.image].sha256 == bundle.sha256_of(made.pictures[source.image])
    assert [line for line in (folder / "classes.txt").read_text().split("\n") if line] == list(CLASSES[:3])


def test_a_picture_that_is_gone_or_another_is_not_shown(folder: Path) -> None:
    found = bundle.read(folder)
    first, second = sorted(found.pictures)[:2]
    (folder / found.pictures[first].file).unlink()
    (folder / found.pictures[second].file).write_bytes(b"something else")
    assert found.picture(first) is None and found.picture(second) is None and found.picture(10**6) is None


def test_a_picture_outside_of_the_bundle_is_not_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(
        (folder / next(iter(bundle.read(folder).pictures.values())).file).read_bytes()
    )
    story = json.loads((folder / "prototypes.json").read_text())
    story["pictures"][0]["file"] = "../secret.jpg"
    (folder / "prototypes.json").write_text(json.dumps(story))
    assert bundle.read(folder).picture(story["pictures"][0]["index"]) is None


def test_a_model_that_was_not_projected_is_refused(tmp_path: Path) -> None:
    made = small()
    model = bundle.build(bundle.config(made.model))
    with pytest.raises(bundle.BadPrototypes, match="not projected"):
        write(tmp_path / "raw", model=model)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: (f / "weights.safetensors").unlink(), "lacks weights"),
        (lambda f: (f / "prototypes.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "prototypes.json").write_text('{"prototypes": []}'), "0 prototypes; the model has 6"),
        (lambda f: (f / "prototypes.json").write_text('{"prototypes": [{"nonsense": 1}]}'), "does not fit"),
        (lambda f: _toml(f, "parts = 4", "parts = 5"), "dead end"),
        (lambda f: _toml(f, "width = 16", "breadth = 16"), "unknown keys breadth"),
        (lambda f: _toml(f, "depth = 2", "depth = 3"), "not those of its model"),
        (lambda f: _weights(f, lambda t: t["head.last_layer.weight"].fill_(float("nan"))), "not finite"),
        (lambda f: _weights(f, lambda t: t["head.patch_select"].fill_(0.01)), "not rounded"),
    ],
)
def test_what_does_not_fit_is_a_sentence(folder: Path, change, said: str) -> None:
    change(folder)
    with pytest.raises(bundle.BadPrototypes, match=said):
        bundle.read(folder)


def _toml(folder: Path, old: str, new: str) -> None:
    text = (folder / "bundle.toml").read_text()
    assert old in text
    (folder / "bundle.toml").write_text(text.replace(old, new))


def _weights(folder: Path, change) -> None:
    tensors = load_file(folder / "weights.safetensors")
    change(tensors)
    save_file(tensors, folder / "weights.safetensors")


def test_published_weights_without_sources_are_read(folder: Path) -> None:
    story = json.loads((folder / "prototypes.json").read_text()) | {"prototypes": None}
    (folder / "prototypes.json").write_text(json.dumps(story))
    (folder / "nearest.safetensors").unlink()
    found = bundle.read(folder)
    assert found.sources is None and found.nearest is None
