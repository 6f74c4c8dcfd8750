"""A prototype taken out for good: a bundle of its own, its lineage, its numbers; the original is untouched; what is refused."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from fanlight.adapters import loader
from fanlight.adapters.base import Pixels
from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier
from fanlight.cli import app
from fanlight.derive.base import Data, Labelled
from fanlight.derive.removal import remove
from fanlight.errors import BadRequest, FanlightError, InvalidField
from support.prototypes import CLASSES, small, write

COUNT = 60


def broken() -> Pixels:
    raise BadRequest("It is no picture.", code="unreadable")


def pictures() -> Data:
    """Noise like that of the training pictures, labelled as the model has it, apart from some; one file is none."""
    rng = np.random.default_rng(5)
    made: list[Labelled] = []
    for n in range(COUNT):
        coarse = rng.integers(0, 256, (4, 4, 3)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
        x = (torch.from_numpy(coarse).permute(2, 0, 1).float()[None] - 127.5) / 64.0
        said = CLASSES[int(small().model(x).logits.argmax())]
        label = None if n % 10 == 0 else "Wolf" if n % 10 == 1 else said.upper()
        made.append(Labelled(f"{n}.png", label, partial(np.copy, coarse)))
    return Data("noise", [*made, Labelled("broken.png", "ant", broken)])


def files(folder: Path) -> dict[str, str]:
    found = (p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def load(folder: Path | str) -> TorchPrototypeClassifier:
    found = loader.load({"bundle": str(folder)})
    assert isinstance(found, TorchPrototypeClassifier)
    return found


def test_it_is_a_model_of_its_own_and_the_original_is_untouched(tmp_path: Path) -> None:
    parent = write(tmp_path / "small")
    before = files(parent)
    told: list[float] = []
    story = remove(parent, [3], pictures(), tmp_path / "derived", lambda done, _: told.append(done))
    assert files(parent) == before
    assert told == sorted(told) and 0 < told[0] and told[-1] < 1
    made, old = load(story["bundle"]), load(parent)
    assert made.digest == story["digest"] != old.digest == story["parent"]["digest"]
    assert made.name == "Small prototypes, without prototype 3"
    assert bool((made.weight[:, 3] == 0).all()) and not bool((old.weight[:, 3] == 0).all())
    assert made.source.about["removed"] == [3]
    assert torch.equal(made.parts, old.parts) and torch.equal(made.gate, old.gate), "only the last layer changed"
    assert made.picture(made.source.sources[0].image) is not None, "it holds its pictures itself"  # type: ignore[index]
    kept = json.loads((Path(story["bundle"]) / "lineage.json").read_text())
    assert len(kept) == 1 and kept[0]["change"] == {"remove": [3]} and kept[0]["parent"]["digest"] == old.digest
    assert "## Without prototype 3" in made.card and old.digest[:16] in made.card


def test_its_numbers_are_those_of_the_pictures(tmp_path: Path) -> None:
    parent = write(tmp_path / "small")
    data = pictures()
    story = remove(parent, [3], data, tmp_path / "derived")
    assert story["data"] == {"name": "noise", "digest": "", "pictures": COUNT, "unreadable": 1}
    labelled = sum(p.label not in (None, "Wolf") for p in data.pictures[:COUNT])
    assert story["before"] == {**story["before"], "count": labelled, "n": labelled}, "labels were those of the model"
    assert story["after"]["count"] == labelled - story["spoiled"] and story["corrected"] == 0
    made = load(story["bundle"])
    right = 0
    for p in data.pictures[:COUNT]:
        if p.label not in (None, "Wolf"):
            logits = made.logits(made.prepare(p.read())[None])
            right += CLASSES[int(logits.argmax())].upper() == p.label
    assert abs(right - story["after"]["count"]) <= 3, "repaired on all or on half of them, it is nearly the same"
    assert 0 <= story["rise"]["repaired"] <= story["rise"]["zeroed"] and story["rise"]["whole"]


def test_a_second_removal_goes_on_from_the_first(tmp_path: Path) -> None:
    parent = write(tmp_path / "small")
    first = remove(parent, [3], pictures(), tmp_path / "derived")
    second = remove(Path(first["bundle"]), [0], pictures(), tmp_path / "derived")
    assert second["name"] == "Small prototypes, without prototypes 0 and 3"
    made = load(second["bundle"])
    assert made.source.about["removed"] == [0, 3] and bool((made.weight[:, [0, 3]] == 0).all())
    assert [s["change"]["remove"] for s in json.loads((made.source.folder / "lineage.json").read_text())] == [[3], [0]]
    again = remove(parent, [3], pictures(), tmp_path / "derived")
    assert again["bundle"] == first["bundle"] + "-2" and again["digest"] == first["digest"], (
        "equal changes, equal models"
    )
    with pytest.raises(InvalidField, match="was taken out before"):
        remove(Path(first["bundle"]), [3], pictures(), tmp_path / "derived")


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ([6], "numbered from 0 to 5"),
        ([-1], "no prototype -1"),
        ([], "No prototype"),
        ([0, 1], "all prototypes of “ant”"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_and_writes_nothing(tmp_path: Path, gone: list[int], said: str) -> None:
    parent = write(tmp_path / "small")
    with pytest.raises(InvalidField, match=said):
        remove(parent, gone, pictures(), tmp_path / "derived")
    assert not (tmp_path / "derived").exists()


def test_pictures_without_a_label_that_is_a_class_are_refused(tmp_path: Path) -> None:
    parent = write(tmp_path / "small")
    some = Data("wolves", [Labelled(p.name, "wolf", p.read) for p in pictures().pictures[:3]])
    with pytest.raises(InvalidField, match="has a label that is a class"):
        remove(parent, [0], some, tmp_path / "derived")


def test_from_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = write(tmp_path / "small")
    for p in pictures().pictures[:20]:
        place = tmp_path / "pictures" / (p.label or "none")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(p.read()).save(place / p.name)
    monkeypatch.setenv("FANLIGHT_DATA_DIR", str(tmp_path / "data"))

    def fanlight(*args: str) -> tuple[int, str, str]:
        run = CliRunner().invoke(app, ["prototypes", "remove", *args])
        return run.exit_code, run.stdout, run.stderr

    data = ("--data", str(tmp_path / "pictures"))
    code, out, _ = fanlight(str(parent), "2", *data)
    assert code == 0 and "without prototype 2" in out and "Right before: 100.0 %" in out and "95 % interval" in out
    made = tmp_path / "data" / "derived" / "small-prototypes-without-prototype-2"
    assert (made / "bundle.toml").is_file() and str(made) in out
    code, out, _ = fanlight(made.name, "4", *data, "--json")
    assert code == 0 and json.loads(out)["change"] == {"remove": [4]}, "by the name of a model that was made here"
    code, _, err = fanlight(str(parent), "99", *data)
    assert code == 4 and "numbered from 0 to 5" in err
    code, _, err = fanlight("smell", "1", *data)
    assert code == 4 and "smell" in err
    code, _, err = fanlight(str(parent), "1", "--data", str(tmp_path / "nowhere"))
    assert code == 4 and "no folder of pictures" in err


def test_a_model_without_prototypes_is_refused(tmp_path: Path) -> None:
    import fanlight_models

    shipped = Path(fanlight_models.__file__).parent / "bundles" / "field-guide"
    with pytest.raises(FanlightError, match="answers by no prototypes"):
        remove(shipped, [0], pictures(), tmp_path / "derived")
