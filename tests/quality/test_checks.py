"""The further checks of a map on methods and models whose answers are known."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fanlight import wire
from fanlight.explainers import base, maps
from fanlight.explainers.attribution.edges import Edges
from fanlight.explainers.attribution.grad_cam import GradCAM
from fanlight.explainers.attribution.input_x_gradient import InputXGradient
from fanlight.explainers.attribution.random import Random
from fanlight.explainers.attribution.saliency import Saliency
from fanlight.quality import agreement, checks, ranks, untrained
from support.explaining import classifier, conv_net, finish, item, linear
from support.subjects import subject

SIDE = 64


def check(name: str, of: Any) -> dict[str, Any]:
    record, _ = finish(checks.run(name, of))
    return record


# --- stability


def test_the_gradient_of_a_linear_model_does_not_change_under_noise() -> None:
    found = check("stability", subject(linear(1, SIDE), Saliency))
    assert found["found"] == pytest.approx({"value": 1, "lo": 1, "hi": 1}, abs=1e-12) and found["verdict"] == "good"
    assert found["more"]["relative change"] == {"value": 0, "lo": 0, "hi": 0}


def test_gradient_times_input_of_a_linear_model_changes_by_as_much_as_the_picture() -> None:
    model = linear(1, SIDE)
    one = item(model)
    of = subject(model, InputXGradient, one)
    found = check("stability", of)
    weight = model.net.weight[one.target.index]
    changes = []
    for n in range(8):
        noise = np.random.default_rng((n + 1, 2)).normal(0, 0.02 * 255, one.image.shape)
        x = model.prepare(np.clip(np.rint(one.image + noise), 0, 255).astype(np.uint8))
        maps_of = [of.patches((weight * v).sum(0).double().numpy()) for v in (one.x, x)]
        changes.append(ranks.change(*maps_of))
    assert found["more"]["relative change"]["value"] == pytest.approx(np.mean(changes), rel=1e-4)
    assert 0 < np.mean(changes) < 0.5


def test_a_random_map_is_as_stable_as_chance() -> None:
    model, covered, values = conv_net(side=SIDE), 0, []
    for n in range(30):
        found = check("stability", subject(model, Random, replace(item(model), seed=100 * n), patch=8))["found"]
        covered += found["lo"] <= 0 <= found["hi"]
        values.append(found["value"])
    assert covered >= 25 and abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(30)


def test_random_maps_fall_into_the_random_floor_and_edges_do_not() -> None:
    found = check("stability", subject(conv_net(side=SIDE), Random, patch=8))
    random, edges = found["floors"]["random"], found["floors"]["edges"]
    assert random["lo"] < 0 < random["hi"] and abs(random["value"]) < 0.05
    assert edges["value"] > 0.5 and found["verdict"] == "warn"


# --- an untrained network


@pytest.mark.parametrize("explainer", [Edges, Random])
def test_what_does_not_ask_the_model_stays_as_it_is_when_the_weights_are_drawn_anew(explainer: Any) -> None:
    record, curves = finish(checks.run("randomisation", subject(conv_net(side=SIDE), explainer)))
    assert record["found"] == pytest.approx({"value": 1, "lo": 1, "hi": 1}, abs=1e-12)
    assert record["more"]["by single pixels"]["value"] == pytest.approx(1, abs=1e-12) and record["verdict"] == "warn"
    np.testing.assert_allclose(curves.check().arrays["y"][:2], 1, atol=1e-12)


def test_the_gradient_of_a_linear_model_has_nothing_left_of_it_with_other_weights() -> None:
    found = check("randomisation", subject(linear(3, SIDE), Saliency))
    assert found["found"]["lo"] <= found["floors"]["random"]["hi"] and found["found"]["value"] < 0.3
    assert found["verdict"] == "good"


def test_depths_go_from_the_top_layer_to_all_of_them_and_the_curve_begins_at_the_map_itself() -> None:
    model = conv_net(side=SIDE)
    record, curves = finish(checks.run("randomisation", subject(model, GradCAM)))
    assert record["parameters"]["layers"] == 3 and record["parameters"]["depths"] == [1, 2, 3]
    np.testing.assert_allclose(curves.arrays["x"], [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curves.arrays["y"][:, 0], [1, 1, record["floors"]["random"]["value"]])
    assert curves.arrays["y"][0, -1] == pytest.approx(record["found"]["value"])


def test_only_the_top_layers_are_drawn_anew_and_each_time_from_the_trained_ones() -> None:
    model = conv_net()
    twin, x = untrained.Copy(model), item(model).x
    finish(twin.redraw(3, 5, x, 0.0, ""))
    finish(twin.redraw(1, 7, x, 0.0, ""))
    with torch.random.fork_rng():
        torch.manual_seed(7 << 16)
        top = nn.Linear(12, 5)
    trained, now = model.net.state_dict(), twin.network.net.state_dict()
    assert torch.equal(now["6.weight"], top.weight) and torch.equal(now["6.bias"], top.bias)
    assert all(torch.equal(now[k], v) for k, v in trained.items() if not k.startswith("6."))


def test_parameters_that_no_layer_initialises_keep_their_mean_and_spread() -> None:
    model = linear(0, SIDE)
    twin = untrained.Copy(model)
    finish(twin.redraw(1, 0, item(model).x, 0.0, ""))
    now, trained = twin.network.net.weight, model.net.weight
    assert float(now.std()) == pytest.approx(float(trained.std()), rel=0.05) and not torch.equal(now, trained)


def test_redrawn_batch_normalisation_takes_its_statistics_from_the_picture() -> None:
    net = nn.Sequential(*[m for _ in range(12) for m in (nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3), nn.ReLU())],
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 5))  # fmt: skip
    model = classifier(net, 5, 32)
    twin, one = untrained.Copy(model), item(model)
    finish(twin.redraw(len(twin.layers), 0, one.x, 0.0, ""))
    signal: list[Tensor] = []
    hook = twin.network.net[33].register_forward_hook(lambda _m, _i, out: signal.append(out))
    twin.network.net[34].register_forward_hook(lambda _m, _i, out: signal.append(out))
    twin.network.logits(one.x[None])
    hook.remove()
    assert float(signal[1].std()) > 0.3, "it does not fade on its way through a deep network"
    assert not any(m.training for m in twin.network.net.modules())


# --- agreement


def test_methods_that_are_exact_on_a_linear_model_agree_on_it() -> None:
    model = linear(2, SIDE)
    at = np.linspace(-1, 1, SIDE)
    bump = np.exp(-4 * (at[:, None] - 0.3) ** 2 - 4 * (at[None] + 0.2) ** 2)
    model.net.weight.copy_(torch.from_numpy(np.broadcast_to(bump, (3, 3, SIDE, SIDE)).copy()))
    bright = np.full((SIDE, SIDE, 3), 220, np.uint8)
    one = replace(item(model), image=bright, x=model.prepare(bright))
    found = check("agreement", subject(model, InputXGradient, one))
    assert set(found["more"]) == {"Occlusion", "Integrated Gradients"}
    assert found["more"]["Integrated Gradients"]["value"] == pytest.approx(1, abs=1e-9)
    assert found["found"]["value"] > 0.9 and found["verdict"] == "good"
    assert found["found"]["value"] == pytest.approx(np.mean([m["value"] for m in found["more"].values()]))


def test_random_maps_agree_with_nothing() -> None:
    model = conv_net(side=SIDE)
    found = [check("agreement", subject(model, Random, replace(item(model), seed=n), patch=8)) for n in range(20)]
    assert sum(f["found"]["lo"] <= 0 <= f["found"]["hi"] for f in found) >= 16
    assert abs(np.mean([f["found"]["value"] for f in found])) < 0.1


@pytest.mark.parametrize("name", ["occlusion", "integrated-gradients", "grad-cam", "saliency", "lime"])
def test_a_method_is_not_compared_with_itself(name: str) -> None:
    found = [e.name for e in agreement.references(name, conv_net(side=SIDE).capabilities, (SIDE, SIDE))]
    assert len(found) == 2 and name not in found


def test_without_another_method_that_fits_agreement_says_so() -> None:
    model = conv_net(side=16)
    of = subject(model, Edges)
    model.features_at, model.differentiable = None, False
    assert agreement.references("edges", model.capabilities, (16, 16)) == []
    record = check("agreement", of)
    assert record["state"] == "unavailable" and "nothing to compare with" in record["reason"]


# --- what numbers mean


def test_equal_orders_are_one_opposite_ones_minus_one_and_nothing_is_nothing() -> None:
    a = np.random.default_rng(0).random(49)
    assert ranks.resampled([(a, 2 * a + 1)]) == pytest.approx({"value": 1, "lo": 1, "hi": 1})
    assert ranks.resampled([(a, -a)]) == pytest.approx({"value": -1, "lo": -1, "hi": -1})
    assert ranks.alike(a, np.zeros(49)) == 0 and ranks.change(a, a) == 0 and ranks.change(a, 3 * a) == pytest.approx(2)


def test_the_interval_of_a_mean_covers_it_in_95_of_100_cases() -> None:
    rng, covered = np.random.default_rng(1), 0
    for _ in range(400):
        found = ranks.reading(rng.normal(0.2, 0.1, 8).tolist(), (-1, 1))
        covered += found["lo"] <= 0.2 <= found["hi"]
    assert 0.92 < covered / 400 < 0.98


def test_the_interval_over_patches_covers_the_correlation_of_what_they_are_drawn_from() -> None:
    rng, covered = np.random.default_rng(2), 0
    truth = 6 / np.pi * np.arcsin(0.5 / 2)  # Spearman's coefficient of normal numbers with correlation 1/2
    for _ in range(200):
        a = rng.normal(size=196)
        b = 0.5 * a + np.sqrt(0.75) * rng.normal(size=196)
        found = ranks.resampled([(a, b)])
        covered += found["lo"] <= truth <= found["hi"]
    assert 0.90 < covered / 200 < 0.99


def test_chance_is_what_random_maps_get() -> None:
    rng, a = np.random.default_rng(3), np.random.default_rng(4).random(64)
    for absolute in (False, True):
        found = ranks.chance(a, 4, absolute=absolute)
        drawn = np.array([[ranks.alike(a, rng.random(64)) for _ in range(4)] for _ in range(300)])
        means = (np.abs(drawn) if absolute else drawn).mean(1)
        assert found["value"] == pytest.approx(means.mean(), abs=0.02)
        assert 0.90 < np.mean((means >= found["lo"]) & (means <= found["hi"])) < 0.99


# --- what can go wrong


class Faulty(base.Explainer):
    """Saliency, until the weights are others or a given number of maps was made."""

    name, title, family, version, accepts = "faulty", "Faulty", "attribution", "1", "image-classifier"
    returns = ("image-map",)
    Params = Saliency.Params
    trained: Tensor | None = None
    raises: type[BaseException] = RuntimeError

    def run(self, model: Any, items: Sequence[base.Item], params: Any, ctx: base.Context) -> base.Run:
        yield base.Step(0.5)
        if self.trained is not None and not torch.equal(model.net[6].weight, self.trained):
            raise self.raises("these weights are strange")
        value = torch.from_numpy(np.random.default_rng(0).random((SIDE, SIDE), dtype=np.float32))
        return [[maps.image_map(i, value, unit="logit", signed=True)] for i in items]


@pytest.fixture
def faulty() -> Any:
    model = conv_net(side=SIDE)
    of = subject(model, Faulty)
    Faulty.trained, Faulty.raises = model.net[6].weight.clone(), RuntimeError
    yield of
    Faulty.trained = None


def copies() -> list[Any]:
    gc.collect()
    return [o for o in gc.get_objects() if type(o) is untrained.Copy]


def test_a_method_that_fails_on_an_untrained_network_is_a_sentence(faulty: Any) -> None:
    record = check("randomisation", faulty)
    assert record["state"] == "unavailable" and "these weights are strange" in record["reason"]
    assert "Faulty made no map" in record["reason"] and copies() == []


def test_want_of_memory_is_the_engines_to_answer_and_leaves_no_copy(faulty: Any) -> None:
    Faulty.raises = MemoryError
    with pytest.raises(MemoryError):
        check("randomisation", faulty)
    assert copies() == []


@pytest.mark.parametrize("steps", [1, 2, 5, 30])
def test_leaving_in_the_middle_frees_the_copy_and_changes_nothing(steps: int) -> None:
    model = conv_net(side=SIDE)
    of = subject(model, Saliency)
    before = {k: v.clone() for k, v in model.net.state_dict().items()}
    running = checks.run("randomisation", of)
    for _ in range(steps):
        next(running)
    (twin,) = [weakref.ref(c) for c in copies()]
    running.close()
    del running
    gc.collect()
    assert twin() is None
    assert all(torch.equal(v, before[k]) for k, v in model.net.state_dict().items())


def test_a_constant_map_cannot_be_checked() -> None:
    of = subject(conv_net(side=SIDE), Saliency)
    flat = replace(of, artifact=replace(of.artifact, arrays={"value": np.full((SIDE, SIDE), 0.5, np.float32)}))
    for name in checks.MEASURES:
        record = check(name, flat)
        assert record["state"] == "unavailable" and "same value everywhere" in record["reason"]


def test_the_global_generator_is_left_alone() -> None:
    of = subject(conv_net(side=SIDE), Saliency)
    before = torch.random.get_rng_state()
    for name in checks.MEASURES:
        check(name, of)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_record_fits_the_wire() -> None:
    for name in checks.MEASURES:
        record = wire.Check(**json.loads(json.dumps(check(name, subject(conv_net(side=SIDE), Saliency)))))
        assert record.state == "succeeded" and record.found is not None and set(record.floors) == {"random", "edges"}
        assert (
            record.found.lo <= record.found.value <= record.found.hi and record.version == checks.MEASURES[name].version
        )
