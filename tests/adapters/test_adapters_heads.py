"""Heads: how outputs become predictions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from fanlight.adapters import heads, loader
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.errors import InvalidField
from support.explaining import conv_net


def test_one_of_several_classes_shares_one_probability():
    found = heads.predictions("single-label", "", ["a", "b", "c"], torch.tensor([0.0, 2.0, 1.0]), 10)
    assert [f["name"] for f in found] == ["b", "c", "a"]
    total = 1 + math.e + math.e**2
    assert [f["probability"] for f in found] == pytest.approx([math.e**2 / total, math.e / total, 1 / total])


def test_labels_have_a_probability_each():
    found = heads.predictions("multi-label", "", ["a", "b"], torch.tensor([0.0, 3.0]), 10)
    assert [f["name"] for f in found] == ["b", "a"]
    assert [f["probability"] for f in found] == pytest.approx([1 / (1 + math.exp(-3)), 0.5])


def test_values_have_a_unit_and_no_probability_and_keep_their_order():
    found = heads.predictions("regression", "years", ["age", "height"], torch.tensor([31.5, 170.0]), 10)
    assert found[0] == {"index": 0, "name": "age", "probability": None, "logit": 31.5, "unit": "years"}
    assert heads.order("regression", torch.tensor([1.0, 2.0])) == [0, 1]


def test_the_explained_output_is_listed_even_where_it_is_not_among_the_best():
    found = heads.predictions("single-label", "", list("abcd"), torch.tensor([4.0, 3.0, 2.0, 1.0]), 2, [3, 0])
    assert [f["index"] for f in found] == [0, 1, 3]


@pytest.mark.parametrize(
    ("head", "unit", "names", "sentence"),
    [
        ("softmax", "", ["a", "b"], "Unknown head"),
        ("single-label", "years", ["a", "b"], "Only a regression has a unit"),
        ("single-label", "", ["a"], "at least two class names"),
        ("regression", "", [], "a name for each output"),
        ("multi-label", "", ["a", "a"], "all different"),
    ],
)
def test_a_head_that_makes_no_sense_is_refused(head, unit, names, sentence):
    with pytest.raises(InvalidField, match=sentence):
        TorchImageClassifier(nn.Flatten(), names, Preprocessing((8, 8)), head=head, unit=unit)


def test_a_head_is_part_of_the_digest_and_the_usual_one_changes_no_old_digest():
    net = conv_net().net

    def made(head, unit=""):
        return TorchImageClassifier(net, list("abcde"), Preprocessing((32, 32)), "3", head=head, unit=unit).digest

    usual = TorchImageClassifier(net, list("abcde"), Preprocessing((32, 32)), "3").digest
    assert made("single-label") == usual
    assert len({usual, made("multi-label"), made("regression"), made("regression", "years")}) == 4


def test_a_regression_of_your_own_has_one_output(tmp_path):
    file = tmp_path / "age.py"
    file.write_text(
        "import torch\n"
        "from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier\n"
        "def load():\n"
        "    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 1))\n"
        "    return TorchImageClassifier(net, ['age'], Preprocessing((8, 8)), head='regression', unit='years')\n"
    )
    about = loader.describe(loader.source(file))
    assert (about["head"], about["unit"], about["classes"]) == ("regression", "years", ["age"])
    assert loader.load(loader.source(file)).measure == "years"
