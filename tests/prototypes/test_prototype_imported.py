"""A published checkpoint as a bundle that is served: it loads, explains, and shows the training pictures that were found again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from test_prototype_published import saved
from torch import Tensor, nn

from fanlight.adapters import loader
from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier
from fanlight_models.prototypes import imported, published, vit
from fanlight_models.prototypes.projection import Source, project
from fanlight_models.prototypes.protovit import ProtoViT

SIDE = 64
NAMES = ("auk", "bittern", "crake")


def training(folder: Path) -> Path:
    """Nine pictures of another size, in folders by class."""
    rng = np.random.default_rng(0)
    for n in range(9):
        place = folder / f"{n % 3}.{NAMES[n % 3]}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (10, 12, 3), dtype=np.uint8).repeat(9, 0).repeat(9, 1)
        Image.fromarray(pixels).save(place / f"{n}.png")
    return folder


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ProtoViT, list[Source], Path]:
    """A projected model as a checkpoint, and the pictures that it was projected onto."""
    torch.manual_seed(0)
    ours = ProtoViT(vit.Shape(size=SIDE, patch=16, width=64, depth=2, heads=1), 3, per_class=2).eval()
    for p in ours.features.parameters():
        if p.ndim > 1:
            nn.init.normal_(p, std=0.3)
    ours.head.prototype_vectors.data.normal_()
    ours.head.patch_select.data[0, 3, 2] = -1.0  # a part that slots left out
    images = training(tmp_path / "images")
    files = imported._files(images, NAMES)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        x = torch.stack([imported._prepared(imported._pixels(p, SIDE)) for p, _ in files])
        yield x, torch.tensor([c for _, c in files])

    sources = project(ours, batches)
    path = tmp_path / "theirs.pth"
    saved(ours, path, monkeypatch)
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    return path, ours, sources, images


def run(tmp_path: Path, path: Path, *more: str) -> int:
    given = [str(path), "--classes", str(tmp_path / "names.txt"), "--out", str(tmp_path / "bundle")]
    return published.main([*given, *more])


def served(folder: Path) -> TorchPrototypeClassifier:
    found = loader.load({"bundle": str(folder)})
    assert isinstance(found, TorchPrototypeClassifier)
    return found


def test_it_is_served_with_the_authors_preparation(
    tmp_path: Path, theirs: tuple[Path, ProtoViT, list[Source], Path]
) -> None:
    path, ours, _, images = theirs
    assert run(tmp_path, path, "--name", "Theirs") == 0
    made = served(tmp_path / "bundle")
    assert made.name == "Theirs" and list(made.classes) == list(NAMES) and made.source.sources is None
    picture = next(images.rglob("*.png"))
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    x = made.prepare(pixels)
    assert torch.allclose(x, imported._prepared(imported._pixels(picture, SIDE)), atol=1e-5)
    assert torch.allclose(made.logits(x[None]), ours(x[None]).logits, atol=1e-5)
    assert "untested" not in made.card and "not in the published file" in made.card


def test_training_pictures_are_found_again(
    tmp_path: Path, theirs: tuple[Path, ProtoViT, list[Source], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _, sources, images = theirs
    assert run(tmp_path, path, "--images", str(images)) == 0
    assert "6 of them with their training picture" in capsys.readouterr().err
    made = served(tmp_path / "bundle")
    found = made.source.sources
    assert found is not None
    for a, b in zip(found, sources, strict=True):
        assert (a.image, a.token) == (b.image, b.token) and a.movement is None
        assert a.self_activation == pytest.approx(b.self_activation, abs=1e-4)
        assert made.picture(a.image) is not None
    assert found[3].token[2] is None, "a part that was left out has no place"


def test_what_is_not_found_is_unavailable_and_no_other_picture_stands_for_it(
    tmp_path: Path, theirs: tuple[Path, ProtoViT, list[Source], Path]
) -> None:
    from fanlight.explainers.matches import _row

    path, _, sources, images = theirs
    gone = sources[0].image
    assert gone is not None
    file = imported._files(images, NAMES)[gone][0]
    file.unlink()
    assert run(tmp_path, path, "--images", str(images)) == 0
    made = served(tmp_path / "bundle")
    assert made.source.sources is not None
    assert made.source.sources[0].image is None
    row = _row(made, 0)
    assert row["source"]["status"] == "unavailable" and "empty" not in row["flags"] and "weak_self" not in row["flags"]
    lost = [j for j, s in enumerate(sources) if s.image == gone]
    assert [j for j, s in enumerate(made.source.sources) if s.image is None] == lost
    told = json.loads((tmp_path / "bundle" / "prototypes.json").read_text())
    assert told["recovered"] is True


def test_a_checkpoint_before_its_projection_is_refused(
    tmp_path: Path, theirs: tuple[Path, ProtoViT, list[Source], Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    _, ours, _, images = theirs
    ours.head.patch_select.data[:] = 0.01
    saved(ours, tmp_path / "early.pth", monkeypatch)
    assert run(tmp_path, tmp_path / "early.pth") == 1
    assert "saved before its projection" in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()
    ours.head.patch_select.data[:] = 200.0
    saved(ours, tmp_path / "late.pth", monkeypatch)
    assert run(tmp_path, tmp_path / "late.pth", "--images", str(images / "0.auk")) == 1
    assert "0 subfolders; 3 classes need one each" in capsys.readouterr().err
