"""The field guide's verdict on methods whose score is known: the truth itself, and noise."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import torch

from fanlight.adapters import loader
from fanlight.artifact import Artifact
from fanlight.bench import world as bench
from fanlight.errors import InvalidField
from fanlight.explainers.base import Explainer, Params, Step
from fanlight.explainers.registry import find
from fanlight.quality import world
from fanlight_models.plain_cnn import PlainCNN
from fanlight_models.recipes import field_guide as recipe
from fanlight_models.worlds import fieldguide
from fanlight_models.worlds.fieldguide import measures
from fanlight_models.worlds.fieldguide.truth import part_truth

SCENES = 6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle as the recipe writes it, of a small network that was not trained."""
    folder = tmp_path_factory.mktemp("bundles")
    with torch.random.fork_rng():
        torch.manual_seed(3)
        net = PlainCNN(recipe.WIDTHS, recipe.DEPTH, len(fieldguide.SPECIES)).eval()
    recipe.write(folder, net, 1 / 24, argparse.Namespace(biased=False, epochs=0, seed=0, train=0))
    return folder / bench.WORLD


@pytest.fixture(scope="module")
def model(place: Path):
    return loader.load(loader.source(place))


class Drawn(Explainer):
    """A method whose maps are made by the test: `make` from (picture, seed) to (size, size)."""

    version = "1"
    accepts = "image-classifier"
    returns = ("image-map",)
    Params = Params

    def run(self, model, items, params, ctx):
        yield Step(0.5)
        return [
            [Artifact("map", "image-map", {"value": type(self).make(i.image, i.seed)}, {"unit": "logit"})]
            for i in items
        ]


def judged(method, model, scenes=SCENES):
    given = fieldguide.split("test", scenes)
    predict = bench.remembered(model)
    targets = [int(predict(fieldguide.draw(s).image[None])[0].argmax()) for s in given]
    return bench.wired(measures.judge(bench.explains(method, model), predict, given, targets))


def test_the_truth_scores_at_the_ceiling_and_noise_at_the_floor(model):
    predict = bench.remembered(model)
    told = {}
    for scene in fieldguide.split("test", SCENES):
        drawing = fieldguide.draw(scene)
        target = int(predict(drawing.image[None])[0].argmax())
        told[drawing.image.tobytes()] = measures.oracle(drawing, part_truth(scene, predict, target))

    class Oracle(Drawn):
        name = "oracle"
        make = staticmethod(lambda image, _seed: told[image.tobytes()])

    class Noise(Drawn):
        name = "noise"
        make = staticmethod(lambda image, seed: np.random.default_rng(seed).standard_normal(image.shape[:2]))

    best, chance = judged(Oracle, model), judged(Noise, model)
    assert set(best) == set(chance) == set(measures.MEASURES) == set(bench.UNITS)
    for name, found in best.items():
        assert found.value == pytest.approx(found.ceiling, abs=1e-3), name
    for name in ("part ranking", "deletion", "preservation"):
        found = chance[name]
        assert found.lo <= found.floor <= found.hi, name
        assert found.place(found.value) < 0.5 < best[name].place(best[name].value), name
    assert best["part ranking"].lo > best["part ranking"].floor


def test_a_map_without_negative_values_is_compared_with_chance_of_its_kind(model):
    class Even(Drawn):
        name = "even"
        make = staticmethod(lambda image, _seed: np.ones(image.shape[:2]))

    class Signed(Drawn):
        name = "signed"
        make = staticmethod(lambda image, _seed: np.where(np.arange(image.shape[1]) % 2, 1.0, -1.0) + 0 * image[..., 0])

    even, signed = (judged(m, model, 3)["part ranking"] for m in (Even, Signed))
    assert even.value == pytest.approx(even.floor, abs=0.1), "both rank by area"
    assert even.floor != pytest.approx(signed.floor, abs=0.01)


def test_methods_are_measured_or_the_reason_is_given(place, model):
    found = bench.scored(place, [find("saliency"), find("random"), find("attn-lrp")], 2)
    assert set(found.explainers) == {"saliency", "random"}
    assert found.explainers["saliency"].version == find("saliency").version
    assert "attention" in found.unavailable["attn-lrp"]
    assert (found.model_digest, found.scenes, found.world_version) == (model.digest, 2, fieldguide.VERSION)
    assert world.Record.model_validate_json(found.model_dump_json()) == found
    again = bench.scored(place, [find("saliency")], 2)
    assert again.explainers["saliency"] == found.explainers["saliency"]


def test_what_is_measured_again_replaces_only_itself(place):
    both = bench.scored(place, [find("random"), find("edges"), find("attn-lrp")], 1)
    one = bench.scored(place, [find("edges")], 1)
    assert bench.merged(one, both).explainers == {"random": both.explainers["random"], **one.explainers}
    assert bench.merged(one, both).unavailable == both.unavailable
    assert bench.merged(one, None) == one
    with pytest.raises(InvalidField):
        bench.merged(one, both.model_copy(update={"scenes": 2}))


def test_the_command_keeps_what_it_measured(place, tmp_path, monkeypatch):
    monkeypatch.setattr(world, "FILE", tmp_path / "scores.json")
    options = ["--model", str(place), "--scenes", "1", "--write", "--methods"]
    threads = torch.get_num_threads()
    try:
        told = bench.run([*options, "random"])
        bench.run([*options, "edges"])
    finally:
        torch.set_num_threads(threads)
    kept = world.read(tmp_path / "scores.json")
    assert kept is not None and set(kept.explainers) == {"random", "edges"}
    assert str(told["explainers"]).startswith("random: ") and "best" in str(told["explainers"])
