"""The recipes from end to end, on folders and counts that are small; and the bundles that ship."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fanlight_models.concepts import bundle
from fanlight_models.concepts.answers import Answers
from fanlight_models.efficientnet_lite import EfficientNetLite0
from fanlight_models.recipes import cub_concepts, field_guide_concepts
from support.cub import mimic


@pytest.fixture(autouse=True)
def threads():
    """The recipes set them for their process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_field_guide_recipe_goes_from_drawing_to_bundles(tmp_path: Path, capfd) -> None:
    given = f"--out {tmp_path / 'bundles'} --work {tmp_path / 'work'} --scenes 24 --later 16 --test 6 --seeds 1 --epochs 1 --later-epochs 2".split()
    field_guide_concepts.main(given)
    assert "concepts: epoch 1 of 1" in capfd.readouterr().err
    for name, kind in (("scbm-field-guide", "scbm"), ("cbm-field-guide", "hard-cbm")):
        found = bundle.read(tmp_path / "bundles" / name)
        assert (
            found.model.kind == kind
            and len(found.concepts) == 79
            and len(found.classes) == 24
            and len(found.groups()) == 19
        )
        assert "hidden" in found.card and "Species right" in found.card
        # the bundle's one model is what was trained in two parts
        options = Namespace(work=tmp_path / "work", scenes=24, later=16, test=6, epochs=1, later_epochs=2)
        features = field_guide_concepts.seen(options, found.model.encoder, "test")
        own = field_guide_concepts.bottleneck(options, kind, 0, features).read(features.x)
        reading = found.model.read(field_guide_concepts.prepared(field_guide_concepts.drawn(options, "test").images))
        torch.testing.assert_close(reading.mean, own.mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(reading.covariance(), own.covariance(), rtol=1e-4, atol=1e-5)
        assert found.model.intervene(reading, Answers.none(6, 79)).classes.shape == (6, 24)
    field_guide_concepts.main(given)  # everything is there: no epoch is trained again
    assert "epoch" not in capfd.readouterr().err


def test_the_bird_recipe_makes_a_bundle_of_a_cub_folder_in_one_command(tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    save_file(
        {k: v.contiguous() for k, v in EfficientNetLite0(10).state_dict().items()}, encoder / "weights.safetensors"
    )
    folder = mimic(tmp_path)
    given = [
        str(folder),
        "--out",
        str(tmp_path / "bundles"),
        "--encoder",
        str(encoder),
        "--least",
        "1",
        "--epochs",
        "2",
        "--steps",
        "2",
    ]
    cub_concepts.main([*given, "--features", str(tmp_path / "features.safetensors")])
    found = bundle.read(tmp_path / "bundles" / "scbm-birds")
    assert (
        found.concepts == ("has_bill_shape::hooked", "has_bill_shape::flat", "has_crest::yes")
        and len(found.classes) == 3
    )
    assert "majority" in found.card and "| hard-cbm |" in found.card and "research" in found.terms
    x = torch.stack([cub_concepts.picture(folder / "images" / "001.Bird_1" / "3.jpg")])
    reading = found.model.read(x)
    assert found.model.intervene(reading, Answers.of([{1: "yes"}], 3)).classes.shape == (1, 3)


def test_the_bird_recipe_takes_tables_too(tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_file(
        {k: v.contiguous() for k, v in EfficientNetLite0(10).state_dict().items()}, tmp_path / "weights.safetensors"
    )
    folder = mimic(tmp_path)
    lines = ["path,species,split"] + [
        f"{c:03d}.Bird_{c}/{i}.jpg,b{c},{'test' if i == 3 else 'train'}" for c in (1, 2, 3) for i in range(4)
    ]
    (folder / "images.csv").write_text("\n".join(lines))
    (folder / "classes.csv").write_text("species,flat,hooked,never\nb1,90,0,0\nb2,10,70,0\nb3,0,80,3\n")
    cub_concepts.main(
        [str(folder), "--out", str(tmp_path), "--encoder", str(tmp_path), "--table", "images.csv", "--images", "images", "--label", "species",
         "--class-table", "classes.csv", "--least", "1", "--epochs", "1", "--steps", "1", "--kind", "cem", "--name", "own"]
    )  # fmt: skip
    found = bundle.read(tmp_path / "own")
    assert found.model.kind == "cem" and found.concepts == ("flat", "hooked")


def test_missing_weights_are_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="fanlight_models.convert"):
        cub_concepts.frozen(tmp_path)
