"""The field guide's truth and measures, on models whose answers are known by construction."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fanlight_models.worlds.fieldguide import BACKGROUNDS, GROUPS, PARTS, Plate, draw, landings, measures, scene, truth

BIRD = scene(3, 1).clear()
WEIGHTS = np.linspace(-1.0, 2.0, len(PARTS))


def additive(made, weights=WEIGHTS, size=112):
    """A model that is a weighted sum over parts: for each it looks at one pixel that the part fills, which nothing else changes."""
    drawing = draw(made, size)
    probes = []
    for i, part in enumerate(PARTS):
        gone = (drawing.image != draw(made.without(part), size).image).any(2)
        own = np.argwhere((drawing.shares[i] == 1) & gone)
        if len(own):
            probes.append((weights[i], *own[len(own) // 2]))
    assert len(probes) >= 10

    def predict(images):
        out = np.zeros((len(images), 2))
        for w, y, x in probes:
            out[:, 1] += w * (images[:, y, x] == drawing.image[y, x]).all(1)
        return out

    return predict, drawing


def background_only(images):
    """Looks at a corner, where there is never a bird."""
    return images[:, :6, :6].mean((1, 2)) / 255


@pytest.fixture(scope="module")
def found():
    predict, drawing = additive(BIRD)
    return predict, drawing, truth.part_truth(BIRD, predict, 1)


def test_effects_of_parts_are_the_drop_when_each_is_redrawn_away(found):
    predict, drawing, known = found
    for i, part in enumerate(PARTS):
        drop = predict(draw(BIRD).image[None])[0, 1] - predict(draw(BIRD.without(part)).image[None])[0, 1]
        assert known.effects[i] == pytest.approx(drop if known.visible[i] else 0, abs=1e-12)
    assert np.isin(known.effects.round(9), [0.0, *WEIGHTS.round(9)]).all(), "the model is additive"
    assert known.effects.sum() == pytest.approx(known.whole - known.blank)


def test_parts_that_occluders_cover_have_no_effect_at_all():
    hidden = next(
        s for i in range(40) if (s := scene(3, i)).occluders and not truth.touching(draw(s))[: len(PARTS)].all()
    )
    covered = ~truth.touching(draw(hidden))
    assert covered.any()
    for i in np.flatnonzero(covered):
        assert (draw(hidden).image == draw(hidden.without(PARTS[i])).image).all()


def test_shapley_values_of_all_subsets_are_those_of_the_definition():
    chance = np.random.default_rng(0)
    players = ["bill", "eye", "crown", "tail"]
    worth = {frozenset(c): chance.normal() for k in range(5) for c in itertools.combinations(players, k)}
    phi, error = truth._shapley(players, lambda sets: np.array([worth[s] for s in sets]), 4, 0)
    for i, p in enumerate(players):
        orders = list(itertools.permutations(players))
        gains = [worth[frozenset(o[: o.index(p) + 1])] - worth[frozenset(o[: o.index(p)])] for o in orders]
        assert phi[i] == pytest.approx(math.fsum(gains) / len(orders), abs=1e-12)
    assert (error == 0).all()


def test_sampled_shapley_values_sum_to_the_whole_and_say_how_sure_they_are(monkeypatch):
    monkeypatch.setattr(truth, "EXACT", 4)
    players = list(PARTS[:6])

    def game(sets):
        return np.array([sum(WEIGHTS[PARTS.index(p)] for p in s) + 0.5 * ({"eye", "crown"} <= s) for s in sets])

    phi, error = truth._shapley(players, game, 24, 0)
    exact = WEIGHTS[:6] + 0.25 * np.array([0, 1, 1, 0, 0, 0])
    assert phi.sum() == pytest.approx(exact.sum(), abs=1e-12)
    assert (np.abs(phi - exact) <= 4 * error + 1e-12).all()


def test_shapley_values_of_a_drawn_bird_sum_to_what_the_bird_adds(found):
    predict, _, known = found
    few = truth.part_truth(BIRD.without(*PARTS[5:]), predict, 1, shapley=True)
    assert few.shapley.sum() == pytest.approx(few.whole - few.blank, abs=1e-9)
    assert (few.error == 0).all()
    some = truth.part_truth(BIRD, predict, 1, shapley=True, permutations=2)
    assert some.shapley.sum() == pytest.approx(some.whole - some.blank, abs=1e-9)
    assert np.abs(some.shapley - known.effects)[known.visible].max() < 1e-9, "the model is additive"


def test_the_effect_of_a_value_is_the_change_when_it_is_redrawn():
    change = truth.concept_effect(BIRD, lambda images: images.mean((1, 2)) / 255, "crown")
    values = GROUPS[[g.name for g in GROUPS].index("crown")].values
    assert change.shape == (len(values), 3)
    assert np.abs(change[values.index(BIRD.value("crown"))]).max() == 0
    assert np.abs(change).max() > 0


def test_a_model_that_looks_at_the_background_is_found_out_and_one_that_does_not_is_not():
    assert truth.shortcut(BIRD, background_only, 0).share == 1
    corner = draw(BIRD).bird
    inside = truth.shortcut(
        BIRD, lambda images: np.stack([images[:, corner].mean((1, 2)), images[:, corner].mean((1, 2))], 1), 1
    )
    assert inside.share < 0.1
    assert BIRD.background in BACKGROUNDS


def test_a_map_that_says_the_truth_ranks_parts_perfectly_and_a_negated_one_in_reverse(found):
    _, drawing, known = found
    told = measures.oracle(drawing, known)
    assert measures.part_ranking(told, drawing, known) == pytest.approx(1, abs=0.02)
    assert measures.part_ranking(-told, drawing, known) == pytest.approx(-1, abs=0.02)
    assert measures.inside_bird(told, drawing) > 0.99
    assert measures.inside_what_matters(told, drawing, known) > 0.8
    assert measures.on_background(np.ones((112, 112)), drawing) == pytest.approx(
        (drawing.shares[:14].sum(0) == 0).mean()
    )


def test_deletion_and_preservation_by_the_true_order_have_their_closed_form():
    weights = np.where(np.arange(len(PARTS)) % 2 == 0, 1.0, 0.25)
    predict, _ = additive(BIRD, weights)
    known = truth.part_truth(BIRD, predict, 1)
    order = np.sort(known.effects[known.visible])[::-1]
    curve = 1 - np.concatenate(([0], np.cumsum(order))) / order.sum()
    area = (curve[:-1] + curve[1:]).mean() / 2
    assert measures.removal(BIRD, predict, known, known.effects) == pytest.approx((area, 1 - area), abs=1e-9)
    assert measures.removal(BIRD, predict, known, -known.effects) == pytest.approx((1 - area, area), abs=1e-9)
    assert area < 0.45


def test_a_coarse_map_keeps_its_sum_and_a_wrong_one_is_refused():
    cells = np.random.default_rng(0).normal(size=(7, 7))
    assert measures.at_size(cells, 112).sum() == pytest.approx(cells.sum())
    for wrong in (np.zeros(4), np.zeros((0, 3)), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="map"):
            measures.at_size(wrong, 112)


def test_ranks_share_ties():
    assert measures.rank_correlation(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 2, 3])) == pytest.approx(1)
    assert measures.rank_correlation(np.array([1.0, 2, 2, 3]), np.array([2.0, 1, 3, 4])) == pytest.approx(0.6324555320)
    assert math.isnan(measures.rank_correlation(np.ones(4), np.arange(4.0)))


def test_a_method_is_judged_between_chance_and_truth():
    predict, _ = additive(BIRD)
    scenes = [BIRD, BIRD.on("sky"), BIRD.on("reeds")]
    known = truth.part_truth(BIRD, predict, 1)
    told = measures.oracle(draw(BIRD), known)
    chance = np.random.default_rng(1)
    judged = measures.judge(
        lambda image: told + 0.2 * told.std() * chance.standard_normal(told.shape), predict, scenes, [1, 1, 1]
    )
    ranking = judged["part ranking"]
    assert set(judged) == set(measures.MEASURES)
    assert ranking.floor < 0.6 and ranking.ceiling > 0.95
    assert ranking.floor < ranking.value <= ranking.ceiling + 0.05
    assert ranking.low <= ranking.value <= ranking.high and ranking.n == 3


def test_intervals_cover_the_mean_and_leave_out_what_is_undefined():
    values = np.random.default_rng(0).normal(2, 1, 400)
    mean, low, high = measures.bootstrap(np.concatenate((values, [np.nan])))
    assert low < mean < high and mean == pytest.approx(values.mean())
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.15)


def test_concept_accuracy_is_told_apart_for_what_can_be_seen():
    concepts = np.array([[True, False, True, False]])
    seen, hidden = measures.concept_accuracy(
        np.array([[0.9, 0.2, 0.1, 0.7]]), concepts, np.array([[True, True, False, False]])
    )
    assert (seen[0], hidden[0]) == (1.0, 0.0)
    none = measures.concept_accuracy(np.array([[0.9, 0.2, 0.1, 0.7]]), concepts, np.ones((1, 4), bool))[1]
    assert math.isnan(none[0])
    assert measures.intervention_gain(np.array([[0.5, 0.6, 0.8]]))[0] == pytest.approx(0.15)


def test_a_prototype_that_follows_the_eye_is_consistent_and_stable_and_one_that_wanders_is_not():
    drawings = [draw(scene(3, i).clear()) for i in range(12)]
    eye = PARTS.index("eye")
    on_eye = np.stack([d.points[eye] for d in drawings])
    fixed = np.random.default_rng(0).uniform(0, 112, on_eye.shape)
    found = [landings.landed(landings.around(p, 112), drawings) for p in (on_eye, fixed)]
    assert landings.rates(*found[0])[eye] == 1
    assert landings.consistency(found[:1]) == 1
    assert landings.consistency(found[1:]) == 0
    assert landings.stability([found[0][0]], [found[0][0]]) == 1
    assert landings.stability([found[0][0]], [found[1][0]]) < 0.5
    noise = landings.perturbation((2, 3, 8, 8), 0)
    assert np.abs(noise).max() <= 0.25 and noise.dtype == np.float32


def test_a_plate_redraws_what_drawing_anew_gives():
    plate = Plate(BIRD)
    for removed in (frozenset(), frozenset({"wing"}), frozenset(PARTS)):
        assert (plate.draw(removed).image == draw(BIRD.without(*removed)).image).all()
