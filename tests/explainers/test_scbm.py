"""Prediction by concepts: the specification's closed forms through the whole path, and what answers may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fanlight.adapters.concept_bottleneck import ConceptClassifier
from fanlight.adapters.image_classifier import Preprocessing
from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.errors import InvalidField
from fanlight.explainers.base import Target
from fanlight.explainers.concepts.scbm import Scbm
from fanlight_models.concepts import build
from fanlight_models.concepts.gaussian import unfilled
from support.bottleneck import CONCEPTS, bottleneck
from support.explaining import explained, item

MEAN = (0.5, -0.2, 0.1)
LOWER = ((1.0, 0.0, 0.0), (0.6, 0.8, 0.0), (-0.3, 0.4, 1.2))


def known() -> ConceptClassifier:
    """The bottleneck of the specification's closed forms: every picture has the same mean, covariance and head."""
    encoder = {"kind": "plain-cnn", "widths": [4], "depth": 1, "width": 4}
    model = build({"kind": "scbm", "covariance": "global", "concepts": 3, "classes": 2, "encoder": encoder})
    with torch.no_grad():
        model.mean.weight.zero_()
        model.mean.bias.copy_(torch.tensor(MEAN))
        model.spread.values.copy_(unfilled(torch.tensor(LOWER, dtype=torch.float64)))
        model.head.layers[0].weight.copy_(torch.tensor([[1.5, -2.0, 0.7]]))
        model.head.layers[0].bias.fill_(-0.3)
    return ConceptClassifier.of(
        model, concepts=("a", "b", "c"), classes=("no", "yes"), preprocessing=Preprocessing((32, 32))
    )


def answered(concept: int | str, value: Any) -> dict[str, Any]:
    return {"set_concept": {"concept": concept, "value": value}}


def quadrature(mean: float, variance: float) -> float:
    """E[sigmoid] on a fine grid, written out."""
    z = np.linspace(-10, 10, 20001)
    weight = np.exp(-z * z / 2)
    return float((weight / (1 + np.exp(-mean - np.sqrt(variance) * z))).sum() / weight.sum())


def test_closed_forms_without_an_answer() -> None:
    model = known()
    (found,) = explained(Scbm, model, item(model, target=Target(1)))
    np.testing.assert_allclose(found.arrays["before"][0], (0.6020271328, 0.4587588311, 0.5188175281), atol=1e-7)
    assert found.arrays["classes_before"][0, 1] == pytest.approx(0.5107666915, abs=1e-7)
    assert found.arrays["classes_before"][1].max() == 0 and found.meta["samples"] == 0, "three concepts: no draws"


def test_closed_forms_after_an_answer() -> None:
    model = known()
    stored = explained(Scbm, model, item(model, target=Target(1)), strategy="percentile")
    edited = Scbm().edit(model, stored, [answered(0, "yes")], Scbm.Params(strategy="percentile"))
    after = edited.artifacts[0].check().arrays
    np.testing.assert_allclose(after["after"][0], (1, 0.7539089024, 0.3814218000), atol=1e-7)
    assert after["classes_after"][0, 1] == pytest.approx(0.4804268637, abs=1e-7), "lower, though its weight is positive"
    assert next(p for p in edited.prediction if p["index"] == 1)["probability"] == after["classes_after"][0, 1]
    np.testing.assert_array_equal(after["before"], stored[0].arrays["before"])


def test_the_confidence_region_of_one_answer() -> None:
    model = known()
    stored = explained(Scbm, model, item(model, target=Target(1)))
    after = Scbm().edit(model, stored, [answered(0, "yes")], Scbm.Params()).artifacts[0].arrays["after"][0]
    eta = 3.0758293035
    expected = (1, quadrature(-0.2 + 0.6 * (eta - 0.5), 0.64), quadrature(0.1 - 0.3 * (eta - 0.5), 1.6))
    np.testing.assert_allclose(after, expected, atol=1e-7)


def test_every_answer_leaves_the_head_alone() -> None:
    model = known()
    stored = explained(Scbm, model, item(model, target=Target(1)))
    edits = [answered(0, "yes"), answered(1, "no"), answered(2, "yes")]
    after = Scbm().edit(model, stored, edits, Scbm.Params()).artifacts[0].arrays["classes_after"]
    assert after[0, 1] == pytest.approx(1 / (1 + np.exp(-(1.5 + 0.7 - 0.3))), abs=1e-7)


def test_effects_are_what_an_edit_then_does() -> None:
    model = bottleneck()
    (found,) = explained(Scbm, model, item(model))
    weight = found.arrays["weights"][found.meta["target"]["class"]].astype(float)
    for row, value in ((0, "yes"), (2, "no")):
        made = Scbm().edit(model, [found], [answered(3, value)], Scbm.Params()).artifacts[0].arrays
        moved = made["after"][0] - found.arrays["before"][0]
        total = found.arrays["effects"][row, 3] + found.arrays["effects"][row + 1, 3]
        assert total == pytest.approx(float(moved @ weight), abs=1e-6)
        assert found.arrays["effects"][row, 3] == pytest.approx(float(moved[3] * weight[3]), abs=1e-6)
        assert np.abs(moved).min() > 1e-4, "here everything correlates"


def test_a_soft_answer_and_unknown() -> None:
    model = bottleneck()
    stored = explained(Scbm, model, item(model))
    edits = Scbm.canonical([answered("spotted", 0.7), answered("crest long", "unknown")], stored[0].meta)
    after = Scbm().edit(model, stored, edits, Scbm.Params()).artifacts[0].arrays["after"][0]
    assert after[4] == pytest.approx(0.7, abs=1e-9)
    alone = Scbm().edit(model, stored, edits[:1], Scbm.Params()).artifacts[0].arrays["after"][0]
    assert after[1] == alone[1], "unknown conditions on nothing"


@pytest.mark.parametrize("kind", ["hard-cbm", "soft-cbm", "cem", "autoregressive"])
def test_every_kind_of_bottleneck_can_be_corrected(kind: str) -> None:
    model = bottleneck(kind=kind)
    stored = explained(Scbm, model, item(model))
    edited = Scbm().edit(model, stored, [answered(2, "yes")], Scbm.Params())
    made = edited.artifacts[0].check()
    moved = np.abs(made.arrays["after"][0] - made.arrays["before"][0])
    assert made.arrays["after"][0, 2] == 1
    assert (np.delete(moved, 2).max() > 1e-6) == (kind == "autoregressive"), "nothing else moves without correlation"
    assert np.abs(made.arrays["classes_after"] - made.arrays["classes_before"]).max() > 1e-6
    assert len(Scbm().suggest(model, stored, [], Scbm.Params())["questions"]) == 3
    draw = renderer("concepts")
    assert draw.sentence(made) and draw.detail(made)["answers"] == [[2, "yes"]] or kind == "cem"


def test_the_next_question_skips_what_is_settled() -> None:
    model = bottleneck()
    stored = explained(Scbm, model, item(model))
    edits = Scbm.canonical([answered("crest long", "yes"), answered("spotted", "unknown")], stored[0].meta)
    asked = Scbm().suggest(model, stored, edits, Scbm.Params())
    assert {q["concept"] for q in asked["questions"]} == {2, 3}, "crest is settled, spotted was asked about"
    assert asked["of"] == 2


ABOUT = {"concepts": list(CONCEPTS), "exclusive": [[0, 1], [2, 3]]}


def test_edits_have_one_form() -> None:
    given = [answered("crest::long", 0), answered("Crest None", True), answered(4, 0.25), answered("crest long", "no")]
    assert Scbm.canonical(given, ABOUT) == [answered(0, "yes"), answered(4, 0.25), answered(1, "no")]


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ([answered("crest::none", "yes"), answered("crest::long", "yes")], "exclude each other"),
        ([answered("crest::none", 0.7), answered("crest::long", 0.7)], "sum to 1.40"),
        ([answered("bill::hooked", "no"), answered("bill::straight", "no")], "all were answered with no"),
        ([answered("tail", "yes")], "No concept is called “tail”"),
        ([answered(5, "yes")], "There is no concept 5"),
        ([answered(True, "yes")], "There is no concept True"),
        ([answered(0, 1.2)], "between 0 and 1"),
        ([answered(0, float("nan"))], "between 0 and 1"),
        ([answered(0, "perhaps")], "no answer"),
        ([{"set_concept": 3}], "names a concept and a value"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(edits: list[Any], says: str) -> None:
    with pytest.raises(InvalidField, match=says) as caught:
        Scbm.canonical(edits, ABOUT)
    assert caught.value.code == "invalid_edit" and caught.value.allowed


def test_a_picture_unlike_the_reference_cases_is_said_to_be() -> None:
    model = bottleneck()
    (found,) = explained(Scbm, model, item(model))
    sane = Artifact(found.name, found.kind, found.arrays, {**found.meta, "distance": 1.0, "reach": 2.0})
    odd = Artifact(found.name, found.kind, found.arrays, {**found.meta, "distance": 3.0, "reach": 2.0})
    draw = renderer("concepts")
    assert draw.detail(sane)["unusual"] == ""
    assert "Mahalanobis distance of 3.00" in draw.sentence(odd) and "within 2.00" in draw.detail(odd)["unusual"]
    assert found.meta["distance"] > 0 and found.meta["reach"] > 0
