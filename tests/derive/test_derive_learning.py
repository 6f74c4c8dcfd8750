"""Prototypes that forget, and a further class: what is named changes, everything else stays to the last bit; what is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from fanlight.adapters import loader
from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier
from fanlight.cli import app
from fanlight.derive.base import Data, Labelled
from fanlight.derive.learning import add_class, forget, halves
from fanlight.errors import InvalidField
from support.prototypes import CLASSES, small, write

STRIPES = 24


def noise(count: int = 60) -> list[Labelled]:
    """Labelled as the small model has it."""
    rng = np.random.default_rng(5)
    made = []
    for n in range(count):
        coarse = rng.integers(0, 256, (4, 4, 3)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
        x = (torch.from_numpy(coarse).permute(2, 0, 1).float()[None] - 127.5) / 64.0
        label = CLASSES[int(small().model(x).logits.argmax())]
        made.append(Labelled(f"{n}.png", label, partial(np.copy, coarse)))
    return made


def stripes() -> list[Labelled]:
    """Another kind of picture: black and white bars, somewhat noisy."""
    rng = np.random.default_rng(6)
    made = []
    for n in range(STRIPES):
        bars = np.tile(np.array([0, 255], np.uint8).repeat(4), (32, 4))[..., None].repeat(3, 2)
        some = np.clip(bars.astype(int) + rng.integers(-20, 20, bars.shape), 0, 255).astype(np.uint8)
        made.append(Labelled(f"zebra {n}.png", "Zebra", partial(np.copy, some)))
    return made


def load(folder: Path | str) -> TorchPrototypeClassifier:
    found = loader.load({"bundle": str(folder)})
    assert isinstance(found, TorchPrototypeClassifier)
    return found


def test_halves_are_of_each_class_and_apart() -> None:
    labels = np.array([0, 1, -1, 0, 1, 1, 0, -1, 2])
    learn, measure = halves(labels)
    assert learn.tolist() == [0, 1, 5, 6, 8] and measure.tolist() == [3, 4]


def test_a_prototype_forgets_and_the_others_stay(tmp_path: Path) -> None:
    parent = write(tmp_path / "small")
    story = forget(parent, [2], Data("noise", noise()), tmp_path / "derived")
    old, new = load(parent), load(story["bundle"])
    assert new.name == "Small prototypes, prototype 2 anew" and story["change"] == {"forget": [2]}
    assert story["parent"]["digest"] == old.digest != new.digest == story["digest"]
    rest = [j for j in range(6) if j != 2]
    assert torch.equal(new.parts[rest], old.parts[rest]) and torch.equal(new.weight[:, rest], old.weight[:, rest])
    assert all(
        torch.equal(a, b) for a, b in zip(*(m.prototypes.features.parameters() for m in (old, new)), strict=True)
    )
    forbidden = old.parts[2][old.gate[2] == 1]
    assert float((new.parts[2] @ forbidden.T).max()) < 0.9, "it is at none of the places that it forgot"
    source = new.source.sources[2]  # type: ignore[index]
    assert source.image is not None and new.picture(source.image) is not None
    assert new.source.pictures[source.image].label == int(old.own[2])
    assert source.image not in old.source.pictures, "a picture of the data set, not of the original"
    assert [s.image for j, s in enumerate(new.source.sources or []) if j != 2] == [
        s.image for j, s in enumerate(old.source.sources or []) if j != 2
    ]
    assert new.source.nearest is not None and old.source.nearest is not None
    assert torch.equal(new.source.nearest.image[rest], old.source.nearest.image[rest])
    assert story["labelled"] == story["before"]["n"] < 60 and story["learnt_from"] + story["labelled"] == 60
    assert "## Prototype 2 anew" in new.card
    x = new.prepare(new.picture(source.image))[None]  # type: ignore[arg-type]
    assert float(new.look(x).found.activation[0, 2]) > 3.5, "it is at home in its source, saved as a JPEG"


def test_a_further_class_is_known_and_the_old_ones_stay(tmp_path: Path) -> None:
    parent = write(tmp_path / "small")
    story = add_class(parent, "zebra", Data("zoo", [*noise(), *stripes()]), tmp_path / "derived")
    old, new = load(parent), load(story["bundle"])
    assert list(new.classes) == [*old.classes, "zebra"] and new.name == "Small prototypes, with zebra"
    assert new.weight.shape == (4, 8) and torch.equal(new.parts[:6], old.parts)
    assert torch.equal(new.weight[:3, :6], old.weight)
    assert story["further"]["n"] == STRIPES // 2 and story["further"]["value"] > 0.9
    assert story["after"]["value"] >= story["before"]["value"] - 0.2
    kinds = {new.source.pictures[s.image].label for s in (new.source.sources or [])[6:]}  # type: ignore[index]
    assert kinds == {3}
    every = Data("zoo", [*noise(), *stripes()])
    with pytest.raises(InvalidField, match="too little to learn from"):  # stripes are all alike: nothing else is left
        forget(Path(story["bundle"]), [7], every, tmp_path / "derived")
    again = forget(Path(story["bundle"]), [0], every, tmp_path / "derived")
    assert again["name"] == "Small prototypes, prototype 0 anew, with zebra"
    assert [s["change"] for s in json.loads((Path(again["bundle"]) / "lineage.json").read_text())] == [
        {"add_class": "zebra"},
        {"forget": [0]},
    ]


def test_what_makes_no_sense_is_a_sentence_and_writes_nothing(tmp_path: Path) -> None:
    parent, into = write(tmp_path / "small"), tmp_path / "derived"
    every = Data("noise", noise(30))
    with pytest.raises(InvalidField, match="has a class “Ant” already"):
        add_class(parent, "Ant", every, into)
    with pytest.raises(InvalidField, match="needs a name"):
        add_class(parent, " ", every, into)
    with pytest.raises(InvalidField, match="0 pictures labelled “yak”; 4 are needed"):
        add_class(parent, "yak", every, into)
    with pytest.raises(InvalidField, match="no pictures of the classes that"):
        add_class(parent, "zebra", Data("stripes", stripes()), into)
    with pytest.raises(InvalidField, match="numbered from 0 to 5"):
        forget(parent, [6], every, into)
    few = Data("few", [p for p in noise() if p.label != "bee"][:12])
    with pytest.raises(InvalidField, match="0 pictures labelled “bee”"):
        forget(parent, [2], few, into)
    assert not into.exists()


def test_from_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = write(tmp_path / "small")
    for p in [*noise(24), *stripes()[:8]]:
        place = tmp_path / "pictures" / str(p.label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(p.read()).save(place / p.name)
    monkeypatch.setenv("FANLIGHT_DATA_DIR", str(tmp_path / "data"))
    data = ("--data", str(tmp_path / "pictures"))
    run = CliRunner().invoke(app, ["prototypes", "add-class", str(parent), "Zebra", *data])
    assert run.exit_code == 0, run.stderr
    assert "with Zebra" in run.stdout and "Right on Zebra: " in run.stdout
    run = CliRunner().invoke(app, ["prototypes", "forget", str(parent), "0", *data, "--json"])
    assert run.exit_code == 0 and json.loads(run.stdout)["change"] == {"forget": [0]}
