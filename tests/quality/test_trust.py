from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fanlight.artifact import Artifact
from fanlight.explainers import maps
from fanlight.explainers.attribution.integrated_gradients import IntegratedGradients
from fanlight.explainers.attribution.kernel_shap import KernelSHAP
from fanlight.explainers.attribution.random import Random
from fanlight.explainers.base import Target
from fanlight.quality import trust
from fanlight.wire import Trust
from support.explaining import Context, classifier, conv_net, explained, finish, item, linear

SIDE = 64  # 16 patches of 16 px
LABEL = maps.squares((SIDE, SIDE), trust.PATCH)


def measured(model, one, value, floor=None, **meta):
    artifact = maps.image_map(one, torch.as_tensor(value), unit="logit", signed=True, **meta)
    return finish(trust.run(model, one, [artifact], floor, Context(64)))


def worth(model, one):
    """What each patch adds to the target of an additive model, (16,)."""
    weight = one.target.value(model.net.weight[None].flatten(2).transpose(1, 2).reshape(-1, len(model.classes)))
    return trust.patch_means((weight.view(3, SIDE, SIDE) * one.x).sum(0).double().numpy(), LABEL) * trust.PATCH**2


def additive(seed=0, target=None):
    """An additive model and a picture whose value differs clearly from that of plain grey."""
    for n in range(seed, seed + 50):
        model = linear(n, side=SIDE)
        one = item(model, n, target)
        if abs(worth(model, one).sum()) > 2:
            return model, one
    raise AssertionError("no such picture")


@pytest.mark.parametrize("target", [Target(0), Target(2, 1)], ids=str)
def test_of_an_additive_model_the_curves_are_sums_in_closed_form(target):
    model, one = additive(3, target)
    each = worth(model, one)
    score = np.random.default_rng(0).permutation(16).astype(np.float64)
    result = measured(model, one, score[LABEL])
    gain = np.concatenate([[0], np.cumsum(each[np.argsort(-score)])]) / abs(each.sum())
    steps = [int(16 * t / 28 + 0.5) for t in range(29)]
    insertion = gain[steps]
    deletion = gain[-1] - insertion
    np.testing.assert_allclose(result.curves.arrays["y"][0], insertion, atol=1e-4)
    np.testing.assert_allclose(result.curves.arrays["y"][1], deletion, atol=1e-4)
    area = np.sum((insertion[1:] + insertion[:-1]) / 2) / 28
    floor = result.record["floor"]
    assert result.record["insertion"] == pytest.approx(area - floor["insertion"], abs=1e-4)
    assert result.record["deletion"] == pytest.approx(floor["deletion"] - (gain[-1] - area), abs=1e-4)
    assert result.record["faithfulness"] == pytest.approx((result.record["insertion"] + result.record["deletion"]) / 2)


def test_the_order_of_the_truth_reaches_the_ceiling_and_its_reverse_the_bottom():
    model, one = additive(5)
    each = worth(model, one)
    best = measured(model, one, each[LABEL])
    assert best.record["above_floor"] is True
    rng = np.random.default_rng(1)
    others = [measured(model, one, rng.random(16)[LABEL], best.floor).record for _ in range(40)]
    worst = measured(model, one, -each[LABEL], best.floor).record
    for measure in ("insertion", "deletion", "faithfulness"):
        assert all(worst[measure] < o[measure] < best.record[measure] for o in others)
    assert worst["above_floor"] is False


def test_random_maps_score_zero_within_their_interval():
    covered, faithfulness, above = [], [], 0
    for picture in range(20):
        model, one = additive(100 + picture)
        floor = None
        items = [replace(one, seed=seed) for seed in range(16)]
        for other, (artifact,) in zip(items, explained(Random, model, items), strict=True):
            result = finish(trust.run(model, other, [artifact], floor, Context(64)))
            floor = result.floor
            faithfulness.append(result.record["faithfulness"])
            above += result.record["above_floor"]
            covered.append([i["lo"] <= 0 <= i["hi"] for i in result.record["interval"].values()])
    assert np.abs(np.mean(faithfulness)) < 0.25 * np.std(faithfulness)  # 3 standard errors, floors included
    assert (np.mean(covered, 0) > 0.90).all() and (np.mean(covered, 0) < 0.985).all()
    assert above / len(covered) < 0.05


def test_a_map_that_knows_the_model_beats_the_floor_on_a_network_that_is_not_additive():
    model = conv_net(1, side=SIDE)
    one = item(model, 4)
    regions = explained(KernelSHAP, model, one, patch=16, samples=512)
    record = finish(trust.run(model, one, regions, None, Context())).record
    assert record["faithfulness"] > 0 and record["above_floor"] is True
    assert record["completeness_error"] == pytest.approx(0, abs=1e-9)


def test_a_target_below_the_baseline_is_judged_the_same_way():
    for seed in range(60):
        model = linear(seed, side=SIDE)
        one = item(model, seed, Target(0))
        if worth(model, one).sum() < -2:
            break
    each = worth(model, one)
    record = measured(model, one, each[LABEL]).record
    assert record["insertion"] > 0 and record["deletion"] > 0 and record["above_floor"] is True


def test_a_cached_floor_is_used_and_gives_the_same_numbers():
    model, one = additive(9)
    score = np.random.default_rng(2).random(16)[LABEL]
    first = measured(model, one, score)
    model.passes = 0
    again = measured(model, one, score, json.loads(json.dumps(first.floor)))
    assert again.record == first.record
    assert model.passes <= 64, "the floor's 542 pictures are not asked for again"
    stale = measured(model, one, score, {**first.floor, "version": 0})
    assert stale.record == first.record
    assert np.array_equal(stale.floor["insertion"], first.floor["insertion"])


def test_the_floor_belongs_to_the_input_and_not_to_the_seed():
    model, one = additive(9)
    score = np.random.default_rng(2).random(16)[LABEL]
    floor = measured(model, one, score).floor
    assert measured(model, replace(one, seed=99), score).floor == floor
    assert measured(model, replace(one, key="another picture"), score).floor != floor


def test_deletion_of_an_order_is_insertion_of_its_reverse():
    model, one = additive(2)
    score = np.random.default_rng(4).permutation(16).astype(float)
    forward, backward = (measured(model, one, s[LABEL]).curves.arrays["y"] for s in (score, -score))
    reversible = [t for t in range(29) if trust.counts(16)[t] + trust.counts(16)[28 - t] == 16]
    assert len(reversible) > 20
    np.testing.assert_allclose(forward[1][reversible], backward[0][::-1][reversible], atol=1e-5)


@pytest.mark.parametrize("patches", [1, 4, 16, 49, 195, 196, 225])
def test_counts_run_from_none_to_all_in_even_steps(patches):
    found = trust.counts(patches)
    assert len(found) == trust.STEPS + 1 and found[0] == 0 and found[-1] == patches
    assert np.ptp(np.diff(found)) <= 1


def test_equal_patches_are_put_in_a_random_order():
    orders = [trust.descending(np.array([1.0, 0, 0, 0, 2]), np.random.default_rng(s)).tolist() for s in range(30)]
    assert all(o[:2] == [4, 0] for o in orders)
    assert len({tuple(o) for o in orders}) == 6


class Flat(nn.Module):
    """Sees nothing: the same logits for every picture."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor([[2.0, 1.0]]).expand(len(x), 2) + 0 * x.mean((1, 2, 3))[:, None]


def test_without_a_difference_to_explain_trust_is_unavailable_and_says_why():
    model = classifier(Flat(), 2, SIDE)
    result = measured(model, item(model), np.random.default_rng(0).random((SIDE, SIDE)))
    assert result.record["state"] == "unavailable" and result.curves is None and result.floor is None
    assert "2 for the picture and 2 for plain grey" in result.record["reason"]
    assert "0.1" in result.record["reason"]


def test_a_constant_map_is_unavailable():
    model, one = additive(1)
    result = measured(model, one, np.full((SIDE, SIDE), 0.25))
    assert result.record["state"] == "unavailable" and "same value everywhere" in result.record["reason"]


def test_an_explanation_without_a_map_is_unavailable():
    model, one = additive(1)
    curves = Artifact("c", "curves", {}, {})
    assert finish(trust.run(model, one, [curves], None, Context())).record["state"] == "unavailable"


def test_a_model_that_answers_nan_is_unavailable():
    model, one = additive(1)
    model.net.weight.fill_(float("nan"))
    result = measured(model, one, np.random.default_rng(0).random((SIDE, SIDE)))
    assert result.record["state"] == "unavailable" and "not finite" in result.record["reason"]


def test_the_record_fits_the_wire_and_carries_the_completeness_error():
    model = conv_net(side=SIDE)
    one = item(model)
    (artifact,) = explained(IntegratedGradients, model, one, steps=16)
    result = finish(trust.run(model, one, [artifact], None, Context()))
    assert Trust(**json.loads(json.dumps(result.record))).completeness_error == artifact.meta["completeness_error"]
    assert Artifact.from_bytes(result.curves.check().to_bytes()).meta["series"][0] == "insertion"
