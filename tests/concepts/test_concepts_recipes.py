"""The recipes from end to end, on folders and counts that are small; and the bundles that ship."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from test_concepts_data import mimic

from fanlight_models.concepts import bundle
from fanlight_models.concepts.answers import Answers
from fanlight_models.efficientnet_lite import EfficientNetLite0
from fanlight_models.recipes import cub_concepts, field_guide_concepts


@pytest.fixture(autouse=True)
def threads():
    """The recipes set them for their process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_field_guide_recipe_goes_from_drawing_to_bundles(tmp_path: Path, capfd) -> None:
    given = [
        "--out",
        str(tmp_path / "bundles"),
        "--work",
        str(tmp_path / "work"),
        "--scenes",
        "40",
        "--test",
        "12",
        "--seeds",
        "1",
    ]
    given += ["--epochs", "1", "--later-epochs", "2"]
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
        images = field_guide_concepts.drawn(field_guide_concepts_options(tmp_path), "test").images
        reading = found.model.read(field_guide_concepts.prepared(images))
        assert found.model.intervene(reading, Answers.none(12, 79)).classes.shape == (12, 24)
    field_guide_concepts.main(given)  # everything is there: no epoch is trained again
    assert "epoch" not in capfd.readouterr().err


def field_guide_concepts_options(tmp_path: Path):
    import argparse

    return argparse.Namespace(work=tmp_path / "work", scenes=40, later=30, test=12)


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
