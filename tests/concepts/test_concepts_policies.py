"""Which question comes next, what answers are worth, and the numbers behind an explanation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fanlight_models.concepts import explaining, policies
from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.bundle import build
from fanlight_models.concepts.curves import curve, rule_effect
from fanlight_models.concepts.protocol import Reading
from fanlight_models.concepts.strategies import Strategy

K, C, N = 5, 3, 16


def made(kind: str = "scbm"):
    torch.manual_seed(1)
    model = (
        build({"kind": kind, "concepts": K, "classes": C, "encoder": {"kind": "features", "inputs": 4}}).double().eval()
    )
    with torch.no_grad():
        model.head.layers[0].weight.mul_(6)
    return model.requires_grad_(False)


def reading(rows: int = N) -> Reading:
    chance = torch.Generator().manual_seed(4)
    a = torch.randn(rows, K, K, generator=chance, dtype=torch.float64)
    return Reading(
        torch.randn(rows, K, generator=chance, dtype=torch.float64),
        torch.linalg.cholesky(a @ a.mT + 0.2 * torch.eye(K)),
    )


def truth() -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(6)
    given = reading()
    concepts = (
        given.mean + (given.lower @ torch.randn(N, K, 1, generator=chance, dtype=torch.float64))[..., 0] > 0
    ).double()
    return concepts, made().head(concepts).argmax(1)


@pytest.mark.parametrize("goal", policies.GOALS)
@pytest.mark.parametrize("strategy", ["percentile", "confidence-region"])
def test_expected_gain_is_that_of_trying_every_answer(goal: str, strategy: str) -> None:
    model, given, chosen = made(), reading(3), Strategy(strategy)
    said = [{0: "yes"}, {}, {2: "no", 3: "unknown"}]
    found = policies.expected_gain(model, given, Answers.of(said, K), chosen, goal=goal)
    for row, already in enumerate(said):
        own = given.rows(slice(row, row + 1))

        def sure(answers: dict, own: Reading = own) -> float:
            p = model.intervene(own, Answers.of([answers], K), chosen).classes[0].tolist()
            return max(p) if goal == "correctness" else sum(v * math.log(v) for v in p if v > 0)

        now = model.intervene(own, Answers.of([already], K), chosen)
        for concept in range(K):
            if concept in already:
                assert found[row, concept] == -torch.inf
                continue
            p = now.concepts[0, concept].item()
            by_hand = p * sure({**already, concept: "yes"}) + (1 - p) * sure({**already, concept: "no"}) - sure(already)
            assert found[row, concept].item() == pytest.approx(by_hand, abs=1e-10)


def test_uncertainty_asks_for_the_one_nearest_to_a_half_after_each_answer() -> None:
    model, given = made(), reading()
    concepts, labels = truth()
    found = curve(model, given, concepts, labels, steps=3)
    known = torch.zeros(N, K, dtype=torch.bool)
    for step in range(3):
        now = model.intervene(given, Answers.truth(concepts, known))
        nearest = torch.where(known, torch.inf, (now.concepts - 0.5).abs()).argmin(1)
        assert torch.equal(found.asked[:, step], nearest)
        known[torch.arange(N), nearest] = True


def test_random_asks_for_each_concept_once_and_ends_at_the_truth() -> None:
    concepts, labels = truth()
    found = curve(made(), reading(), concepts, labels, steps=K, policy="random", seed=2)
    assert torch.equal(found.asked.sort(1).values, torch.arange(K).expand(N, -1))
    assert found.concepts[:, -1].min() == 1 and found.right[:, -1].min() == 1
    mean, low, high = found.interval("right")
    assert (low <= mean).all() and (mean <= high).all() and mean[-1] == 1
    torch.testing.assert_close(found.gain(), (1 - found.right[:, 0]) / K)


def test_questions_can_be_limited() -> None:
    concepts, labels = truth()
    among = torch.zeros(N, K, dtype=torch.bool)
    among[:, [1, 4]] = True
    among[0] = False
    found = curve(made(), reading(), concepts, labels, steps=3, among=among)
    assert set(found.asked[1:, :2].flatten().tolist()) == {1, 4}
    assert (found.asked[1:, 2] == -1).all() and (found.asked[0] == -1).all()


@pytest.mark.parametrize("given", [{"policy": "clever", "steps": 1}, {"steps": K + 1}, {"steps": -1}])
def test_curves_that_cannot_be_are_refused(given: dict) -> None:
    concepts, labels = truth()
    with pytest.raises(ValueError, match="is no policy|has 0 to"):
        curve(made(), reading(), concepts, labels, **given)


def test_a_rule_is_applied_to_a_set_and_counted() -> None:
    model, given = made(), reading()
    concepts, labels = truth()
    where = concepts[:, 2] > 0
    found = rule_effect(model, given, labels, {2: 1.0}, where=where)
    answers = Answers.truth(
        concepts[where], torch.zeros(int(where.sum()), K).index_fill(1, torch.tensor([2]), 1).bool()
    )
    now = model.intervene(given.rows(where), Answers.none(int(where.sum()), K)).classes.argmax(1) == labels[where]
    then = model.intervene(given.rows(where), answers).classes.argmax(1) == labels[where]
    assert found.n == int(where.sum())
    assert found.before[0] == pytest.approx(now.double().mean().item())
    assert found.after[0] == pytest.approx(then.double().mean().item())
    assert found.turned_right - found.turned_wrong == int(then.sum()) - int(now.sum())
    assert found.change[1] <= found.change[0] <= found.change[2]
    with pytest.raises(ValueError, match="fits no picture"):
        rule_effect(model, given, labels, {2: 1.0}, where=torch.zeros(N, dtype=torch.bool))


def test_contributions_add_up_to_the_expected_logits() -> None:
    model, given = made(), reading(3)
    found = model.intervene(given, Answers.of([{0: "yes"}, {}, {1: 0.4}], K))
    base = torch.full((K,), 0.3)
    shares = explaining.contributions(model, found, base)
    layer = model.head.layers[0]
    torch.testing.assert_close(shares.sum(2), layer(found.concepts).detach() - layer(base.double()).detach())


def test_effects_split_into_direct_and_through_correlation() -> None:
    model, given = made(), reading(1)
    answers = Answers.of([{1: "no"}], K)
    found = explaining.effects(model, given, answers)
    now = model.intervene(given, answers)
    for branch, word in ((0, "yes"), (1, "no")):
        after = model.intervene(given, Answers.of([{1: "no", 3: word}], K))
        moved = after.concepts[0] - now.concepts[0]
        torch.testing.assert_close(found.concepts[branch, 3], moved)
        torch.testing.assert_close(found.logits[branch, 3], model.weights() @ moved)
        torch.testing.assert_close(found.direct[branch, 3], model.weights()[:, 3] * moved[3])
        torch.testing.assert_close(found.classes[branch, 3], after.classes[0] - now.classes[0])
    alone = explaining.effects(
        model, Reading(given.mean, torch.diag_embed(given.lower.diagonal(dim1=1, dim2=2))), answers
    )
    assert alone.through.abs().max() < 1e-14 < found.through.abs().max()


def test_a_head_that_is_not_linear_has_no_contributions() -> None:
    model = made("cem")
    outcome = model.intervene(model.read(torch.zeros(1, 4, dtype=torch.float64)), Answers.none(1, K))
    with pytest.raises(explaining.NotLinear, match="cem"):
        explaining.contributions(model, outcome, torch.zeros(K))


def test_similar_cases_come_nearest_first() -> None:
    cases = torch.tensor([[0.0, 0, 1], [1, 0, 0.5], [0.9, 0.1, 0.5], [0, 1, 0]], dtype=torch.float64)
    order, apart = explaining.similar(torch.tensor([[1.0, 0, 0.5]]), explaining.roots(cases), 3)
    assert order[0].tolist()[:2] == [1, 2] and apart[0, 0] < 1e-7
    naive = math.sqrt(
        1
        - sum(
            math.sqrt(p * q) + math.sqrt((1 - p) * (1 - q)) for p, q in zip((1, 0, 0.5), (0.9, 0.1, 0.5), strict=True)
        )
        / 3
    )
    assert apart[0, 1].item() == pytest.approx(naive)
    assert explaining.distance(torch.zeros(1, 3), torch.ones(1, 3)).item() == pytest.approx(1.0)


def test_correlations_given_the_picture() -> None:
    given = reading(2)
    correlation = explaining.logit_correlation(given)
    sigma = given.covariance()[1]
    assert correlation[1, 0, 2].item() == pytest.approx((sigma[0, 2] / (sigma[0, 0] * sigma[2, 2]).sqrt()).item())
    of_concepts = explaining.concept_correlation(given, samples=4000)
    assert (of_concepts.diagonal(dim1=1, dim2=2) - 1).abs().max() < 1e-9
    assert (of_concepts.sign() == correlation.sign())[correlation.abs() > 0.3].all()
    assert torch.equal(explaining.logit_correlation(Reading(given.mean))[0], torch.eye(K, dtype=torch.float64))
