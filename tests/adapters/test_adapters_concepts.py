"""Concept bottlenecks as models: two networks with the same weights, names that fit, and every method for pictures on both."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import fanlight_models
from fanlight.adapters import bundle, loader
from fanlight.adapters.base import fits, missing
from fanlight.adapters.bundle import BadBundle
from fanlight.adapters.concept_bottleneck import Usual, arrays, class_logits, reading_of
from fanlight.errors import InvalidField
from fanlight.explainers.base import Explainer, Target, absent
from fanlight.explainers.registry import registry
from fanlight_models.concepts import Answers
from support.bottleneck import CLASSES, CONCEPTS, bottleneck, network
from support.explaining import explained, item

SHIPPED = Path(fanlight_models.__file__).parent / "bundles"
KINDS = ("scbm", "hard-cbm", "soft-cbm", "cem", "autoregressive")


@pytest.mark.parametrize("kind", ["scbm", "hard-cbm"])
def test_class_logits_are_the_expected_ones_of_the_draws(kind: str) -> None:
    """b + W E[c], against the mean over a hundred thousand draws."""
    model = bottleneck(kind=kind)
    x = item(model).x[None]
    reading = model.read(x)
    chance = torch.Generator().manual_seed(3)
    z = torch.randn(100_000, 5, generator=chance, dtype=torch.float64)
    eta = reading.mean + (z @ reading.lower[0].T if reading.lower is not None else 0)
    drawn = torch.rand(100_000, 5, generator=chance, dtype=torch.float64) < torch.sigmoid(eta)
    logits = model.model.head(drawn.float()).double()
    error = logits.std(0) / 100_000**0.5
    assert ((model.logits(x)[0] - logits.mean(0)).abs() < 4.5 * error + 1e-5).all()


@pytest.mark.parametrize("kind", KINDS)
def test_both_networks_can_be_differentiated_and_agree_with_the_reading(kind: str) -> None:
    model = bottleneck(kind=kind)
    x = item(model).x[None].requires_grad_()
    concepts = model.concepts_of.logits(x)
    assert concepts.shape == (1, 5) and model.logits(x).shape == (1, 4)
    for value in (concepts.sum(), (class_logits(model.model, x) * torch.arange(4)).sum()):
        (slope,) = torch.autograd.grad(value, x)
        assert bool(slope.any())
    reading = model.read(x.detach())
    if kind != "autoregressive":  # its reading is a mean over draws
        np.testing.assert_allclose(concepts[0].detach().numpy(), reading.mean[0].numpy(), atol=1e-6)
    chances = model.chances(x.detach())
    assert torch.equal(chances, model.model.intervene(reading, Answers.none(1, 5)).classes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_reading_is_the_reading(kind: str) -> None:
    model = bottleneck(kind=kind)
    reading = model.read(item(model).x[None])
    again = reading_of(arrays(reading))
    for name, value in reading.arrays().items():
        assert torch.equal(again.arrays()[name].double(), value.double()), name


PICTURES = [e for e in registry().values() if e.accepts == "image-classifier"]


@pytest.mark.parametrize("explainer", PICTURES, ids=lambda e: e.name)
@pytest.mark.parametrize("asked", ["classes", "concepts"])
def test_every_method_for_pictures_explains_classes_and_concepts(explainer: type[Explainer], asked: str) -> None:
    whole = bottleneck()
    model = whole if asked == "classes" else whole.concepts_of
    reason = missing(explainer.needs, model.capabilities) or absent(explainer)
    if reason is not None:
        pytest.skip(reason)
    target = Target(2, concept=asked == "concepts")
    found, *_ = explained(explainer, model, item(model, target=target))
    assert found.check().kind in ("image-map", "region-scores")
    assert np.ptp(found.arrays["value"]) > 0, "it says something"


def test_most_methods_fit_a_bottleneck() -> None:
    model = bottleneck(32)
    able = {e.name for e in PICTURES if missing(e.needs, model.capabilities) is None and fits(e.accepts, model.task)}
    assert {"saliency", "integrated-gradients", "grad-cam", "occlusion", "kernel-shap", "rise", "random"} <= able


def test_names_that_do_not_fit_the_model_are_refused() -> None:
    from fanlight.adapters.concept_bottleneck import ConceptClassifier
    from fanlight.adapters.image_classifier import Preprocessing

    made = {"preprocessing": Preprocessing((32, 32))}
    with pytest.raises(InvalidField, match="has 5 concepts; 4 different names"):
        ConceptClassifier.of(network(), concepts=CONCEPTS[:4], classes=CLASSES, **made)
    with pytest.raises(InvalidField, match="has 4 classes; 3 different names"):
        ConceptClassifier.of(network(), concepts=CONCEPTS, classes=("a", "a", "b", "c"), **made)
    with pytest.raises(InvalidField, match="lacks kind, concepts, classes, read"):
        ConceptClassifier.of(torch.nn.Linear(2, 2), concepts=CONCEPTS, classes=CLASSES, **made)


@pytest.mark.parametrize("name", ["scbm-field-guide", "cbm-field-guide"])
def test_a_shipped_bundle_is_a_model(name: str) -> None:
    about = loader.describe({"bundle": str(SHIPPED / name)})
    assert about["task"] == "concept-bottleneck" and len(about["concepts"]) == 79 and len(about["classes"]) == 24
    assert {"gradients", "spatial-features"} <= set(about["capabilities"])
    model = bundle.load(SHIPPED / name)
    assert model.usual is not None and len(model.cases) == len(model.labels) > 79


def test_a_bundle_whose_concepts_do_not_match_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(SHIPPED / "cbm-field-guide", folder)
    names = (folder / "concepts.txt").read_text().splitlines()
    (folder / "concepts.txt").write_text("\n".join(names[:-1]))
    with pytest.raises(BadBundle, match="names 78 concepts; its model has 79"):
        bundle.load(folder)
    (folder / "concepts.txt").write_text("\n".join(names))
    toml = (folder / "bundle.toml").read_text()
    (folder / "bundle.toml").write_text(toml.replace('kind = "plain-cnn"', 'kind = "features"'))
    with pytest.raises(BadBundle, match="reads vectors"):
        bundle.load(folder)


def test_another_name_or_another_case_is_another_model() -> None:
    first, same, other = bottleneck(), bottleneck(), bottleneck(seed=1)
    assert first.digest == same.digest != other.digest
    other = bottleneck()
    other.cases = other.cases.flip(0)
    assert other.digest != first.digest


def test_the_distance_of_the_cases_themselves_is_within_reach() -> None:
    cases = torch.rand(500, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    usual = Usual.of(cases)
    inside = [usual.distance(c) <= usual.reach for c in cases]
    assert 0.985 <= np.mean(inside) <= 0.995
    assert usual.distance(torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)) > usual.reach


OWN = '''"""A bottleneck of one's own, in one file."""
import torch
from torch import nn
from fanlight.adapters.concept_bottleneck import ConceptClassifier
from fanlight.adapters.image_classifier import Preprocessing
from fanlight_models.concepts import Outcome, Reading

class Bright(nn.Module):
    """Two concepts, dark and red; the class is dark or not."""
    kind, concepts, classes = "bright", 2, 2

    def concept_logits(self, x):
        return torch.stack([-x.mean((1, 2, 3)), x[:, 0].mean((1, 2)) - x[:, 1:].mean((1, 2, 3))], 1) * 8

    def class_logits(self, x):
        dark = self.concept_logits(x)[:, :1]
        return torch.cat([dark, -dark], 1)

    def read(self, x):
        with torch.no_grad():
            return Reading(self.concept_logits(x).double())

    def intervene(self, reading, answers, strategy=None, *, samples=100, seed=0):
        p = torch.where(answers.known, answers.value, torch.sigmoid(reading.mean))
        classes = torch.stack([p[:, 0], 1 - p[:, 0]], 1)
        none = torch.zeros_like(p)
        return Outcome(p, none, classes, torch.zeros_like(classes), reading.mean, none, none.bool(), none[:, 0], 0)

    def weights(self):
        return None

def load():
    return ConceptClassifier.of(Bright(), concepts=["dark", "red"], classes=["night", "day"], features_at=None,
                                preprocessing=Preprocessing((32, 32), mean=(127.5,) * 3, std=(64.0,) * 3))
'''


def test_your_own_bottleneck_is_one_file(tmp_path: Path) -> None:
    from fanlight.explainers.concepts.scbm import Scbm

    file = tmp_path / "bright.py"
    file.write_text(OWN)
    model = loader.load({"file": str(file)})
    assert model.task == "concept-bottleneck" and loader.describe({"file": str(file)})["concepts"] == ["dark", "red"]
    stored = explained(Scbm, model, item(model))
    edited = Scbm().edit(model, stored, [{"set_concept": {"concept": 0, "value": "yes"}}], Scbm.Params())
    assert edited.prediction[0]["name"] == "night" and edited.prediction[0]["probability"] == 1
    (found,) = explained(
        registry()["saliency"], model.concepts_of, item(model.concepts_of, target=Target(0, concept=True))
    )
    assert np.ptp(found.check().arrays["value"]) >= 0 and found.arrays["value"].max() > 0
