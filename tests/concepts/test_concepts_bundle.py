"""Bundles of concept models: written, read back, shipped ones; and what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import fanlight_models
from fanlight_models.concepts import bundle
from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.bundle import BadConceptBundle

CONFIG = {
    "kind": "scbm",
    "concepts": 3,
    "classes": 2,
    "covariance": "amortized",
    "encoder": {"kind": "features", "inputs": 4, "hidden": 6},
}
SHIPPED = Path(fanlight_models.__file__).parent / "bundles"


def written(folder: Path) -> bundle.Model:
    torch.manual_seed(0)
    model = bundle.build(CONFIG).eval()
    bundle.write(
        folder, model, CONFIG,
        name='The "small" one', description="Three concepts.", terms="own", concepts=("bill::flat", "bill::hooked", "crest"),
        classes=("duck", "hawk"),
        preprocessing={"size": [8, 8], "mean": [1.5, 2.0, 3.0]}, card="# Small\n", cases=torch.rand(5, 3), labels=torch.tensor([0, 1, 0, 1, 1]),
    )  # fmt: skip
    return model


def test_what_is_written_is_read_and_answers_the_same(tmp_path: Path) -> None:
    model, found = written(tmp_path / "small"), bundle.read(tmp_path / "small")
    assert found.name == 'The "small" one' and found.config == CONFIG and found.preprocessing["mean"] == [1.5, 2.0, 3.0]
    assert found.groups() == [[0, 1]] and found.cases.shape == (5, 3) and found.card == "# Small\n"
    x = torch.randn(2, 4)
    answers = Answers.of([{0: "yes"}, {}], 3)
    assert torch.equal(
        found.model.intervene(found.model.read(x), answers).classes, model.intervene(model.read(x), answers).classes
    )
    assert not found.model.training and not any(p.requires_grad for p in found.model.parameters())


def fewer(folder: Path) -> None:
    weights = load_file(folder / "weights.safetensors")
    weights["mean.weight"] = weights["mean.weight"][:2].clone()
    save_file(weights, folder / "weights.safetensors")


def infinite(folder: Path) -> None:
    weights = load_file(folder / "weights.safetensors")
    weights["mean.bias"] = weights["mean.bias"] * torch.inf
    save_file(weights, folder / "weights.safetensors")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: (f / "concepts.txt").unlink(), "lacks concepts.txt"),
        (lambda f: (f / "concepts.txt").write_text("a\nb\n"), "names 2 concepts; its model has 3"),
        (lambda f: (f / "concepts.txt").write_text("a\nb\na\n"), "names “a” twice"),
        (lambda f: (f / "classes.txt").write_text("a\nb\nc\n"), "names 3 classes; its model has 2"),
        (lambda f: (f / "bundle.toml").write_text("format = "), "not valid TOML"),
        (lambda f: (f / "bundle.toml").write_text('format = 1\ntask = "image-classifier"\n'), "concept-bottleneck"),
        (lambda f: (f / "bundle.toml").write_text((f / "bundle.toml").read_text().replace('"amortized"', '"odd"')), "is no covariance"),
        (fewer, "weights of “small” are not those of its model: mean.weight"),
        (infinite, "not finite"),
        (lambda f: save_file({"concepts": torch.zeros(2, 2), "labels": torch.zeros(2)}, f / "cases.safetensors"), "do not have its 3 concepts"),
    ],
)  # fmt: skip
def test_a_bundle_that_does_not_fit_is_refused_in_a_sentence(tmp_path: Path, spoil, said: str) -> None:
    written(tmp_path / "small")
    spoil(tmp_path / "small")
    with pytest.raises(BadConceptBundle, match=said):
        bundle.read(tmp_path / "small")


def test_names_must_be_as_many_as_the_model_has(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 names of concepts"):
        bundle.write(
            tmp_path, bundle.build(CONFIG), CONFIG, name="", description="", terms="", concepts=("a", "b"), classes=("c", "d"),
            preprocessing={}, card="", cases=torch.zeros(0, 2), labels=torch.zeros(0),
        )  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [("scbm-field-guide", "scbm"), ("cbm-field-guide", "hard-cbm")])
def test_the_shipped_bundles_see_concepts_and_can_be_corrected(name: str, kind: str) -> None:
    """On 24 scenes of the test split: concepts far above chance (0.78), and answers that help the species."""
    from fanlight_models.recipes.field_guide_concepts import CONCEPTS, prepared
    from fanlight_models.worlds import fieldguide

    found = bundle.read(SHIPPED / name)
    assert found.model.kind == kind and found.concepts == CONCEPTS and found.classes == fieldguide.SPECIES
    assert sum(f.stat().st_size for f in (SHIPPED / name).iterdir()) < 10e6
    scenes = fieldguide.arrays(fieldguide.split("test", 24), 112)
    truth, species = torch.from_numpy(scenes.concepts).double(), torch.from_numpy(scenes.species)
    reading = found.model.read(prepared(torch.from_numpy(scenes.images)))
    before = found.model.intervene(reading, Answers.none(24, 79))
    after = found.model.intervene(reading, Answers.truth(truth, torch.ones(24, 79, dtype=torch.bool)))
    assert ((before.concepts > 0.5) == (truth > 0.5)).double().mean() > 0.88
    assert (before.classes.argmax(1) == species).double().mean() > 0.6
    assert (after.classes.argmax(1) == species).double().mean() > 0.85
    head = Answers.truth(
        truth, torch.tensor([c.startswith(("crown", "bill colour", "throat")) for c in CONCEPTS]).expand(24, -1)
    )
    moved = (found.model.intervene(reading, head).concepts - before.concepts)[
        :, [c.startswith("breast") for c in CONCEPTS]
    ]
    assert (moved.abs().max() > 0.05) if kind == "scbm" else (moved == 0).all()
