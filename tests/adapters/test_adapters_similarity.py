"""The similarity of two pictures as a target: an adapter around an adapter, explained like any other."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from fanlight.adapters.similarity import Similarity, embed
from fanlight.errors import InvalidField
from fanlight.explainers.attribution.grad_cam import GradCAM
from fanlight.explainers.attribution.kernel_shap import KernelSHAP
from fanlight.explainers.attribution.saliency import Saliency
from fanlight.explainers.base import Target
from support.explaining import classifier, conv_net, explained, item, photo
from support.tiny_vit import tiny_vit

SIMILAR = Target(0, None, "another")


def pair(model):
    return Similarity(model, embed(model, model.prepare(photo(7))))


def naive(model):
    """cos(e(x), e(reference)) in float64, of the network cut by hand before its last layer."""
    body = copy.deepcopy(model.net[:6]).double()

    def value(x):
        a, b = body(x[None].double())[0], body(model.prepare(photo(7))[None].double())[0]
        return (a * b).sum() / ((a**2).sum().sqrt() * (b**2).sum().sqrt())

    return value


def test_the_value_and_its_gradient_equal_the_naive_twin():
    model = conv_net(5)
    asked, one = pair(model), item(model)
    x = one.x.clone().requires_grad_()
    found = asked.logits(x[None])
    twin = one.x.double().requires_grad_()
    expected = naive(model)(twin)
    assert found.shape == (1, 1)
    torch.testing.assert_close(found[0, 0].double(), expected, rtol=1e-5, atol=1e-7)
    (slope,) = torch.autograd.grad(found.sum(), x)
    (slopes,) = torch.autograd.grad(expected, twin)
    torch.testing.assert_close(slope.double(), slopes, rtol=1e-4, atol=float(1e-5 * slopes.abs().max()))
    (drawn,) = explained(Saliency, asked, item(model, target=SIMILAR))
    assert drawn.meta["target"] == {"similar_to": "another"} and drawn.arrays["value"].any()


def test_a_picture_is_most_similar_to_itself():
    model = conv_net(5)
    asked = pair(model)
    alone = asked.logits(model.prepare(photo(7))[None])
    torch.testing.assert_close(alone, torch.ones(1, 1))
    others = asked.logits(torch.stack([model.prepare(photo(n)) for n in range(4)]))
    assert (others < 1).all()


def test_shapley_values_of_the_similarity_add_up_to_it():
    model = conv_net(5)
    asked, one = pair(model), item(model, target=SIMILAR)
    with torch.no_grad():
        grey = model.colour((127.5,) * 3).expand(1, 3, 32, 32)
        expected = asked.logits(one.x[None]) - asked.logits(grey)
    one = dataclasses.replace(one, logits=asked.logits(one.x[None])[0].detach())
    found = explained(KernelSHAP, asked, one, baseline="grey", patch=8)
    values = next(a for a in found if "all" in a.arrays).arrays
    assert values["all"].shape[1] == 1
    np.testing.assert_allclose(values["value"].sum(), float(expected), rtol=1e-3)


@pytest.mark.parametrize("model", [conv_net(5), tiny_vit(5)], ids=["convolutions", "transformer"])
def test_grid_and_attention_come_with_the_similarity_in_one_graph(model):
    asked = pair(model)
    x = torch.stack([model.prepare(photo(n)) for n in range(2)]).requires_grad_()
    value, grid = asked.features(x)
    torch.testing.assert_close(value, asked.logits(x))
    (slope,) = torch.autograd.grad(value.sum(), grid)
    assert slope.any()
    (drawn,) = explained(GradCAM, asked, item(model, target=SIMILAR), evidence="both")
    assert drawn.arrays["value"].any()
    if "attention" in model.capabilities:
        value, rows, prefix, shape = asked.attentions(x)
        torch.testing.assert_close(value, asked.logits(x), rtol=0, atol=1e-5)
        slopes = torch.autograd.grad(value.sum(), rows)
        assert (prefix, shape, len(rows)) == (1, (4, 4), 2) and all(s.any() for s in slopes)


def test_what_is_not_asked_otherwise_is_the_models_own():
    model = conv_net()
    asked = pair(model)
    before = model.asked
    asked.logits(torch.zeros(3, 3, 32, 32))
    assert asked.asked == model.asked == before + 3
    assert asked.net is model.net and asked.size == model.size and asked.capabilities == model.capabilities
    assert asked.measure == "cosine similarity" and len(asked.classes) == 1


def test_a_model_without_an_embedding_says_so():
    model = classifier(torch.nn.Sequential(torch.nn.Conv2d(3, 2, 32), torch.nn.Flatten()), 2)
    assert "embedding" not in model.capabilities
    with pytest.raises(InvalidField, match="it has no embedding"):
        embed(model, torch.zeros(3, 32, 32))


def test_a_target_is_itself_again_after_json_and_has_a_name():
    target = Target(0, None, "0123456789abcdef")
    assert Target.of(target.json()) == target
    assert target.name(["a", "b"]) == "similarity to picture 01234567"
    assert Target(1).name(["a", "b"]) == "b" and Target(1, 0).name(["a", "b"]) == "b rather than a"
