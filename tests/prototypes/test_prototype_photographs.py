"""Prototypes of a folder of photographs: what is read, what is refused, and from a folder to a bundle in one command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from fanlight.adapters import bundle as bundles
from fanlight_models.efficientnet_lite import EfficientNetLite0
from fanlight_models.prototypes import bundle, cells, vit
from fanlight_models.recipes import photograph_prototypes as recipe


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("encoder")
    net = EfficientNetLite0(10)
    save_file({k: v.contiguous() for k, v in net.state_dict().items()}, folder / "weights.safetensors")
    return folder


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Two classes of eight plain pictures: red or blue, with noise."""
    chance = np.random.default_rng(0)
    for name, colour in (("blue", (20, 40, 200)), ("red", (200, 40, 20))):
        (tmp_path / "photographs" / name).mkdir(parents=True)
        for n in range(8):
            pixels = np.clip(np.array(colour) + chance.normal(0, 30, (40, 60, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photographs" / name / f"{n}.png")
    return tmp_path / "photographs"


def test_a_token_is_a_cell_less_the_mean_cell(encoder: Path) -> None:
    net = recipe.frozen(encoder)
    x = torch.randn(2, 3, 224, 224)
    whole, each = net(x)
    assert each.shape == (2, 49, 320)
    torch.testing.assert_close(whole, each.mean(1))
    torch.testing.assert_close(net.tokens(x).mean(1), torch.zeros(2, 320), atol=1e-4, rtol=0)
    with pytest.raises(ValueError, match="one shape"):
        cells.Cells(vit.Shape(cells.KIND, size=128, patch=32, width=320))


def test_from_a_folder_to_a_bundle_and_on_from_the_checkpoint(
    photographs: Path, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recipe, "EPOCHS", {"backbone": 0, "warm": 1, "joint": 1, "slots": 1, "last": 1})
    given = f"{photographs} --out {tmp_path} --work {tmp_path / 'work'} --encoder {encoder} --per-class 2 --epochs 1 --name small".split()
    recipe.main(given)
    held = bundle.read(tmp_path / "small")
    assert held.model.features.shape == cells.SHAPE and len(held.sources or ()) == 4
    for j, source in enumerate(held.sources or ()):
        assert source.image is not None and held.picture(source.image) is not None
        assert held.pictures[source.image].label == j // 2
    assert held.quality["tested_on"] == 5 and held.quality["additivity"] < 1e-5 and 0 <= held.quality["linear"] <= 1
    served = bundles.load(tmp_path / "small")
    assert served.task == "prototype-classifier" and list(served.classes) == ["blue", "red"]
    capfd.readouterr()
    recipe.main(given)
    assert "epoch" not in capfd.readouterr().err.replace("epochs", "")


def test_a_table_says_classes_and_split(photographs: Path) -> None:
    rows = ["path,species,split"]
    rows += [f"{c}/{n}.png,{c},{'test' if n < 2 else 'train'}" for c in ("red", "blue") for n in range(8)]
    (photographs / "images.csv").write_text("\n".join(rows))
    options = recipe.argparse.Namespace(
        folder=photographs, table="images.csv", images=".", label="species", classes=None, test=0.3
    )
    found = recipe.listed(options)
    assert list(found.classes) == ["blue", "red"] and len(found.tested) == 4 and len(found.trained) == 12
    options.label = "bird"
    with pytest.raises(SystemExit, match="no columns “path” and “bird”"):
        recipe.listed(options)


def test_one_class_and_a_missing_encoder_are_refused_in_sentences(photographs: Path, tmp_path: Path) -> None:
    options = recipe.argparse.Namespace(folder=photographs, table=None, classes=1, test=0.3)
    with pytest.raises(SystemExit, match="tell classes apart"):
        recipe.listed(options)
    with pytest.raises(SystemExit, match="models install"):
        recipe.frozen(tmp_path)
