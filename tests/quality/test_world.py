"""What is said of a method's score on the field guide, and that the shipped scores fit the registry."""

from __future__ import annotations

import importlib

import pytest

from fanlight import bundles, wire
from fanlight.explainers.base import absent
from fanlight.explainers.registry import MODULES, declared
from fanlight.quality import world
from fanlight_models.worlds import fieldguide

RANKING = wire.Measurement(value=0.83, lo=0.71, hi=0.9, floor=-0.001, ceiling=0.97, unit="rank correlation")
RECORD = world.Record(
    world="field-guide",
    world_version=1,
    model="Field guide",
    model_digest="a" * 64,
    scenes=16,
    date="2026-01-01",
    versions={},
    explainers={"saliency": world.Entry(version="2", measures={world.HEADLINE: RANKING})},
    unavailable={"attn-lrp": "It needs attention."},
)


def test_a_score_is_said_in_a_sentence_with_its_interval_its_floor_and_its_ceiling():
    found = world.score("saliency", "2", RECORD)
    assert found.sentence == (
        "On the field guide, where the truth is known, this method ranks the bird's parts with correlation 0.83 to the truth (0.71 to 0.90); "
        "random 0.00, best possible 0.97."
    )
    assert found.state == "measured" and "16 scenes" in found.detail and found.headline == RANKING


def test_what_does_not_beat_chance_is_said_not_to():
    low = RANKING.model_copy(update={"lo": -0.2, "value": -0.05})
    assert world.sentence(low).endswith("That is not above random.") and "correlation −0.05" in world.sentence(low)
    assert "in no order" in world.sentence(None)


def test_a_score_holds_for_the_version_that_was_measured_only():
    old = world.score("saliency", "3", RECORD)
    assert old.state == "outdated" and old.headline is None and old.measures == {}
    assert "for this version" in old.sentence


def test_methods_that_do_not_fit_say_why_and_those_of_others_have_nothing():
    assert world.score("attn-lrp", "1", RECORD).sentence.endswith("does not fit. It needs attention.")
    assert world.score("mine", "1", RECORD) is None
    assert world.score("saliency", "2", None) is None


def test_a_value_lies_between_floor_and_ceiling_whichever_is_larger():
    assert RANKING.place(RANKING.floor) == 0 and RANKING.place(0.97) == 1 and RANKING.place(-0.5) == 0
    falling = wire.Measurement(value=0.2, lo=0.1, hi=0.3, floor=0.6, ceiling=0.1, unit="share")
    assert falling.place(0.2) == pytest.approx(0.8) and falling.place(0.05) == 1
    assert falling.model_copy(update={"ceiling": 0.6}).place(0.5) == 0


def test_the_shipped_scores_fit_the_registry_and_the_shipped_model():
    """Fails where a method was added or its version raised: `fanlight bench world -- --write --methods NAME`."""
    from fanlight.adapters import loader
    from fanlight.bench.world import WORLD, unfit

    shipped = next((p for p in bundles.shipped() if p.name == WORLD), None)
    record = world.shipped()
    assert (record is None) == (shipped is None), "scores and model ship together"
    if record is None or shipped is None:
        return
    model = loader.load(loader.source(shipped))
    assert (record.world_version, record.model_digest) == (fieldguide.VERSION, model.digest)
    every = [declared(importlib.import_module(f"fanlight.explainers.{m}")) for m in MODULES]
    ours = [e for e in every if e.accepts == model.task]  # the others explain no classifier of the field guide
    assert {e.name for e in ours} == {*record.explainers, *record.unavailable}
    for method in ours:
        entry = record.explainers.get(method.name)
        if entry is None:
            assert record.unavailable[method.name] == unfit(method, model), method.name
        else:
            assert entry.version == method.version, method.name
            assert unfit(method, model) in (None, absent(method)), method.name
