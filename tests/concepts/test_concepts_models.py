"""The bottlenecks: what must hold whatever they have learned."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.bundle import KINDS, build
from fanlight_models.concepts.condition import answered, conditioned
from fanlight_models.concepts.losses import STAGES
from fanlight_models.concepts.protocol import Outcome, Reading
from fanlight_models.concepts.strategies import Strategy, percentiles

K, C, F = 6, 4, 5
STRATEGIES = ("percentile", "empirical-percentile", "confidence-region", "hard")


def make(kind: str, **options: object):
    torch.manual_seed(3)
    model = build({"kind": kind, "concepts": K, "classes": C, "encoder": {"kind": "features", "inputs": F}, **options})
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    if hasattr(model, "table"):
        model.table.copy_(percentiles(torch.rand(50, K)))
    return model.double().eval()


def correlated(rows: int = 3, seed: int = 0) -> Reading:
    chance = torch.Generator().manual_seed(seed)
    a = torch.randn(rows, K, K, generator=chance, dtype=torch.float64)
    return Reading(
        torch.randn(rows, K, generator=chance, dtype=torch.float64),
        torch.linalg.cholesky(a @ a.mT + 0.1 * torch.eye(K)),
    )


def x(rows: int = 3) -> Tensor:
    return torch.randn(rows, F, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def some_answers(rows: int = 3) -> Answers:
    return Answers.of(([{}, {1: "yes", 4: "no"}, {0: "no", 2: 0.3, 5: "yes"}] * rows)[:rows], K)


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_probabilities_and_answers_are_kept(kind: str) -> None:
    model = make(kind)
    found = model.intervene(model.read(x()), some_answers())
    torch.testing.assert_close(found.classes.sum(1), torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-6)
    assert found.concepts.min() >= 0 and found.concepts.max() <= 1
    assert found.concepts[1, [1, 4]].tolist() == [1, 0]
    assert found.concepts[2, 2].item() == pytest.approx(0.3)
    assert found.classes_error.shape == (3, C) and torch.isfinite(found.classes_error).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_alone_gets_what_it_gets_in_a_batch_and_the_same_seed_the_same_bytes(kind: str) -> None:
    model, answers = make(kind), some_answers()
    reading = model.read(x())
    whole, again = model.intervene(reading, answers, seed=5), model.intervene(reading, answers, seed=5)
    assert torch.equal(whole.classes, again.classes) and torch.equal(whole.concepts, again.concepts)
    for row in range(3):
        own = Answers(*(part[row : row + 1] for part in (answers.value, answers.known, answers.asked)))
        alone = model.intervene(reading.rows(slice(row, row + 1)), own, seed=5)
        torch.testing.assert_close(alone.classes[0], whole.classes[row], rtol=0, atol=1e-9)
        torch.testing.assert_close(alone.concepts[0], whole.concepts[row], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_reading_answers_like_a_fresh_one(kind: str) -> None:
    model = make(kind)
    reading = model.read(x())
    stored = Reading.of(reading.arrays())
    assert torch.equal(
        model.intervene(stored, some_answers()).classes, model.intervene(reading, some_answers()).classes
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_correlation_scbm_is_the_hard_cbm(strategy: str) -> None:
    model = make("scbm")
    reading = correlated()
    diagonal = Reading(reading.mean, torch.diag_embed(reading.lower.diagonal(dim1=1, dim2=2)))  # type: ignore[union-attr]
    before = model.intervene(diagonal, Answers.none(3, K))
    after = model.intervene(diagonal, Answers.of([{1: "yes", 4: "no"}] * 3, K), Strategy(strategy))
    free = [0, 2, 3, 5]
    assert torch.equal(after.concepts[:, free], before.concepts[:, free])
    sharp = Reading(reading.mean, torch.zeros(3, K, K, dtype=torch.float64))
    cbm = make("hard-cbm")
    cbm.head.load_state_dict(model.head.state_dict())
    answers = Answers.of([{1: "yes"}] * 3, K)
    torch.testing.assert_close(
        model.intervene(sharp, answers, Strategy("hard")).classes,
        cbm.intervene(Reading(reading.mean), answers).classes,
        rtol=0,
        atol=0,
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_with_every_concept_answered_only_the_head_speaks(strategy: str) -> None:
    model = make("scbm")
    truth = (torch.rand(3, K) > 0.5).double()
    found = model.intervene(correlated(), Answers.truth(truth, torch.ones(3, K, dtype=torch.bool)), Strategy(strategy))
    torch.testing.assert_close(found.classes, model.head(truth).softmax(1), rtol=0, atol=1e-14)
    assert found.samples == 0 and not found.classes_error.any()


def test_one_answer_is_worth_the_same_in_any_order_and_never_widens() -> None:
    reading = correlated()
    covariance = reading.covariance()
    eta = torch.randn(3, K, dtype=torch.float64)
    known = torch.zeros(3, K, dtype=torch.bool)
    mean, spread = reading.mean, covariance
    last = covariance.diagonal(dim1=1, dim2=2)
    for concept in (4, 0, 2):  # one after the other, at fixed logits
        one = torch.zeros(3, K, dtype=torch.bool)
        one[:, concept] = True
        known = known | one
        said = answered(one)
        step = conditioned(mean, spread, said, said.pick(eta))
        mean, spread = step.mean, step.covariance() + torch.diag_embed(known.double() * 1e-12)
        assert (step.variance <= last + 1e-12).all()
        last = step.variance
    said = answered(known)
    whole = conditioned(reading.mean, covariance, said, said.pick(eta))
    torch.testing.assert_close(torch.where(known, eta, mean), whole.mean, rtol=0, atol=1e-8)
    torch.testing.assert_close(last * ~known, whole.variance, rtol=0, atol=1e-8)


def test_conditioning_is_the_textbook_formula_with_an_explicit_inverse() -> None:
    reading = correlated()
    sigma = reading.covariance()
    known = torch.tensor([[1, 0, 0, 1, 0, 1]] * 3).bool()
    s, r = [0, 3, 5], [1, 2, 4]
    said = answered(known)
    eta = torch.randn(3, 3, dtype=torch.float64)
    found = conditioned(reading.mean, sigma, said, eta)
    for row in range(3):
        inverse = torch.linalg.inv(sigma[row][s][:, s])
        cross = sigma[row][r][:, s]
        torch.testing.assert_close(
            found.mean[row, r], reading.mean[row, r] + cross @ inverse @ (eta[row] - reading.mean[row, s])
        )
        torch.testing.assert_close(found.covariance()[row][r][:, r], sigma[row][r][:, r] - cross @ inverse @ cross.T)


def test_bent_paths_have_the_conditional_distribution() -> None:
    reading = correlated(1)
    said = answered(torch.tensor([[True, False, False, True, False, False]]))
    found = conditioned(reading.mean, reading.covariance(), said, torch.tensor([[1.5, -0.5]], dtype=torch.float64))
    z = torch.randn(200_000, K, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    paths = found.paths(reading.mean[:, None] + z @ reading.lower.mT)[0]  # type: ignore[union-attr]
    assert (paths[:, [0, 3]] == torch.tensor([1.5, -0.5])).all()
    error = (found.variance[0] / 200_000).sqrt()
    assert ((paths.mean(0) - found.mean[0]).abs() <= 4.5 * error + 1e-12).all()
    torch.testing.assert_close(torch.cov(paths.T), found.covariance()[0], rtol=0.03, atol=0.03)


def test_a_percentile_that_pulls_the_wrong_way_is_marked() -> None:
    model, reading = make("scbm"), correlated(1)
    sure = Reading(torch.full((1, K), 5.0, dtype=torch.float64), reading.lower)
    percentile = model.intervene(sure, Answers.of([{0: "yes"}], K), Strategy("percentile"))
    assert percentile.against[0].tolist() == [True] + [False] * (K - 1)
    assert not model.intervene(sure, Answers.of([{0: "yes"}], K), Strategy("confidence-region")).against.any()


def test_a_covariance_that_is_none_is_refused() -> None:
    reading = correlated(1)
    wrong = Reading(reading.mean, torch.full((1, K, K), math.nan, dtype=torch.float64))
    with pytest.raises(ValueError, match="not positive definite"):
        make("scbm").intervene(wrong, Answers.of([{0: "yes"}], K))
    with pytest.raises(ValueError, match="not finite"):
        Reading.of(wrong.arrays())


def test_drawn_classes_of_the_hard_cbm_agree_with_all_patterns() -> None:
    model = make("hard-cbm")
    reading = model.read(x(1))
    found = model.intervene(reading, Answers.of([{1: "yes"}], K), samples=50_000)
    p = torch.sigmoid(reading.mean[0])
    total = torch.zeros(C, dtype=torch.float64)
    for pattern in itertools.product((0.0, 1.0), repeat=K - 1):
        c = torch.tensor([pattern[0], 1.0, *pattern[1:]], dtype=torch.float64)
        each = torch.where(c > 0, p, 1 - p)
        total += each[[0, 2, 3, 4, 5]].prod() * model.head(c).softmax(0).detach()
    assert ((found.classes[0] - total).abs() < 4.5 * found.classes_error[0]).all()


def test_the_autoregressive_one_gives_bayes_rule_by_weighted_draws() -> None:
    model = make("autoregressive")
    reading = model.read(x(1))
    joint, every = [], torch.tensor(list(itertools.product((0.0, 1.0), repeat=K)), dtype=torch.float64)
    logits = model.logits(reading.context.expand(len(every), -1), every).detach()  # type: ignore[union-attr]
    joint = torch.where(every > 0, torch.sigmoid(logits), torch.sigmoid(-logits)).prod(1)
    torch.testing.assert_close(joint.sum(), torch.tensor(1.0, dtype=torch.float64))
    given = joint * (every[:, 3] == 1) * (every[:, 1] == 0)
    given = given / given.sum()
    found = model.intervene(reading, Answers.of([{3: "yes", 1: "no"}], K), samples=40_000)
    assert ((found.concepts[0] - given @ every).abs() <= 5 * found.concepts_error[0] + 1e-9).all()
    classes = given @ model.head(every).softmax(1).detach()
    assert ((found.classes[0] - classes).abs() <= 5 * found.classes_error[0]).all()


def test_an_embedding_model_mixes_and_lets_an_answer_choose() -> None:
    model = make("cem", size=3)
    reading = model.read(x(1))
    both = reading.context.reshape(2, K, 3)  # type: ignore[union-attr]
    p = torch.sigmoid(reading.mean[0]).detach()
    p[2] = 1.0
    by_hand = model.head((p[:, None] * both[0] + (1 - p)[:, None] * both[1]).flatten()).softmax(0)
    torch.testing.assert_close(
        model.intervene(reading, Answers.of([{2: "yes"}], K)).classes[0], by_hand, rtol=0, atol=1e-12
    )


def test_the_soft_one_needs_a_logit() -> None:
    model = make("soft-cbm")
    with pytest.raises(ValueError, match="sees logits"):
        model.intervene(model.read(x()), some_answers(), Strategy("confidence-region"))
    assert isinstance(model.intervene(model.read(x()), some_answers(), Strategy("empirical-percentile")), Outcome)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_moves_what_it_should_and_nothing_else(kind: str, stage: str) -> None:
    model = make(kind).float().train()
    given = (x(8).float(), (torch.rand(8, K) > 0.5).float(), torch.randint(0, C, (8,)))
    if kind == "autoregressive" and stage == "joint":
        with pytest.raises(ValueError, match="in stages"):
            model.losses(*given, stage)
        return
    found = model.losses(*given, stage, 0.7, 10)
    total = found.target + found.concepts + found.precision
    total.backward()
    moved = {n for n, p in model.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    head = {n for n, _ in model.named_parameters() if n.startswith("head.")}
    concepts = {n for n, _ in model.named_parameters()} - head
    expected = {"joint": head | concepts, "concepts": concepts, "target": head, "target-on-truth": head}[stage]
    if kind == "cem" and stage == "concepts":
        assert moved <= expected and "scorer.weight" in moved
    else:
        assert moved == expected - ({"from_concepts"} if K == 1 else set())


def test_draws_go_through_the_head_as_one_batch() -> None:
    """The same as one draw after the other."""
    head = make("scbm").head
    concepts = (torch.rand(3, 7, K) > 0.5).double()
    torch.testing.assert_close(
        head(concepts), torch.stack([head(concepts[:, m]) for m in range(7)], 1), rtol=0, atol=1e-12
    )


def test_two_classes_need_one_logit() -> None:
    model = (
        build({"kind": "scbm", "concepts": K, "classes": 2, "encoder": {"kind": "features", "inputs": F}})
        .double()
        .eval()
    )
    found = model.intervene(correlated(), some_answers())
    assert found.classes.shape == (3, 2) and model.weights().shape == (2, K)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "psychic"},
        {"kind": "scbm", "encoder": {"kind": "crystal"}},
        {"kind": "scbm", "encoder": {"kind": "features", "inputs": 2}, "covariance": "none"},
    ],
)
def test_what_does_not_exist_is_not_built(config: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is no"):
        build({"concepts": 2, "classes": 2, **config})
