"""The Gaussian of the logits: numbers that were computed elsewhere, in float64."""

from __future__ import annotations

import math

import pytest
import torch

from fanlight_models.concepts import gaussian, quadrature
from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.condition import answered, conditioned
from fanlight_models.concepts.encoders import features
from fanlight_models.concepts.losses import concept_loss, temperature
from fanlight_models.concepts.protocol import Reading
from fanlight_models.concepts.scbm import SCBM
from fanlight_models.concepts.strategies import Strategy

L = torch.tensor([[1, 0, 0], [0.6, 0.8, 0], [-0.3, 0.4, 1.2]], dtype=torch.float64)
MU = torch.tensor([0.5, -0.2, 0.1], dtype=torch.float64)
SIGMA = L @ L.T
YES = 2.9444389792


def close(a: torch.Tensor, b: object, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=torch.float64), rtol=0, atol=tolerance)


def scbm(head: tuple[float, ...] = (1.5, -2, 0.7), bias: float = -0.3) -> SCBM:
    model = SCBM(features(2), len(head), 2).double().eval()
    with torch.no_grad():
        model.head.layers[0].weight.copy_(torch.tensor([head]))
        model.head.layers[0].bias.fill_(bias)
    return model


READING = Reading(MU[None], L[None])


def test_the_precision_penalty_is_the_mean_size_off_the_diagonal() -> None:
    precision = torch.linalg.inv(SIGMA)
    close(precision[0], [1.8125, -1.1458333333, 0.4166666667], 1e-10)
    close(gaussian.precision_penalty(L[None]), 0.6365740741, 1e-10)


def test_the_triangle_is_filled_row_by_row_and_can_be_undone() -> None:
    values = torch.tensor([0.3, -0.6, 1.0, 0.2, -0.4, 2.0], dtype=torch.float64)
    lower = gaussian.filled(values, 3)
    softplus = [math.log1p(math.exp(v)) + 1e-6 for v in (0.3, 1.0, 2.0)]
    close(lower, [[softplus[0], 0, 0], [-0.6, softplus[1], 0], [0.2, -0.4, softplus[2]]], 1e-12)
    close(gaussian.unfilled(lower), values, 1e-9)


def test_a_balanced_concept_starts_with_variance_8_67() -> None:
    labels = torch.tensor([[0, 1], [1, 1], [0, 0], [1, 0]] * 5000).double()
    lower = gaussian.of_labels(labels).lower
    close((lower @ lower.T)[0, 0], 34.67886 / 4, 1e-3)


def test_the_global_covariance_begins_as_that_of_the_labels() -> None:
    torch.manual_seed(1)
    labels = (torch.randn(500, 4) @ torch.randn(4, 4) > 0).float()
    made = gaussian.Global(4).double()
    made.begin(labels)
    lower = made(torch.zeros(1, 7))[0].detach()
    expected = 34.67886 * torch.cov(labels.double().T)
    torch.testing.assert_close(lower @ lower.T, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [
        (0.5, 1.0, 0.6020271328),
        (-0.2, 1.0, 0.4587588311),
        (0.1, 1.69, 0.5188175281),
        (1.2666633875, 0.64, 0.7539089024),
        (-0.6333316937, 1.6, 0.3814218000),
        (0.7, 0.0, 1 / (1 + math.exp(-0.7))),
    ],
)
def test_expected_sigmoids(mean: float, variance: float, expected: float) -> None:
    close(
        quadrature.expected_sigmoid(torch.tensor(mean), torch.tensor(variance).double()),
        expected,
        3e-8 if variance == 1.69 else 1e-8,
    )


@pytest.mark.parametrize("deviation", [0.01, 0.3, 0.799, 0.801, 1.599, 1.601, 2.0, 3.1, 6.399, 6.401, 9.0, 40.0])
def test_expected_sigmoids_agree_with_a_fine_grid_at_any_width(deviation: float) -> None:
    mean = torch.tensor([-7.0, -0.4, 0.0, 3.0], dtype=torch.float64)
    z = torch.linspace(-9, 9, 2_000_001, dtype=torch.float64)
    weight = torch.exp(-z * z / 2)
    naive = torch.stack([(torch.sigmoid(m + deviation * z) * weight).sum() / weight.sum() for m in mean])
    close(quadrature.expected_sigmoid(mean, torch.tensor(deviation, dtype=torch.float64) ** 2), naive, 1e-11)


def test_an_expected_sigmoid_does_not_depend_on_its_neighbours() -> None:
    mean, variance = torch.randn(200, dtype=torch.float64), torch.rand(200, dtype=torch.float64) * 60
    every = quadrature.expected_sigmoid(mean, variance)
    for some in (slice(0, 1), slice(3, 20), slice(50, 200, 7)):
        assert torch.equal(quadrature.expected_sigmoid(mean[some], variance[some]), every[some])


def test_patterns_of_three_concepts() -> None:
    p = quadrature.pattern_probabilities(MU, L)
    close(p[0], 0.1112647378, 1e-8)
    close(p[7], 0.1544229251, 1e-8)
    close(p.sum(), 1.0, 1e-12)
    close(p @ quadrature.patterns(3), quadrature.expected_sigmoid(MU, SIGMA.diagonal()), 1e-12)


def test_conditioning_on_one_logit() -> None:
    said = answered(torch.tensor([[True, False, False]]))
    after = conditioned(MU[None], SIGMA[None], said, torch.tensor([[YES]], dtype=torch.float64))
    close(after.mean[0], [YES, 1.2666633875, -0.6333316937], 1e-9)
    close(after.covariance()[0], [[0, 0, 0], [0, 0.64, 0.32], [0, 0.32, 1.6]], 1e-9)
    close(after.variance[0], [0, 0.64, 1.6], 1e-9)


def test_the_prediction_and_what_correcting_a_concept_makes_of_it() -> None:
    model = scbm()
    before = model.intervene(READING, Answers.none(1, 3))
    close(before.classes[0, 1], 0.5107666915, 1e-8)
    after = model.intervene(READING, Answers.of([{0: "yes"}], 3), Strategy("percentile"))
    close(
        after.classes[0, 1], 0.4804268637, 1e-8
    )  # lower, although the weight of concept 0 is positive: concept 1 is dragged up
    close(after.concepts[0], [1.0, 0.7539089024, 0.3814218000], 1e-8)
    assert before.samples == after.samples == 0


def test_draws_agree_with_quadrature_within_four_standard_errors() -> None:
    """A fourth and fifth concept without weight make the exact sum too long, so that classes are drawn."""
    model = scbm((1.5, -2, 0.7, 0, 0))
    lower = torch.block_diag(L, torch.eye(2, dtype=torch.float64))
    reading = Reading(torch.cat([MU, torch.zeros(2).double()])[None], lower[None])
    for answers, expected in (({}, 0.5107666915), ({0: "yes"}, 0.4804268637)):
        found = model.intervene(reading, Answers.of([answers], 5), Strategy("percentile"), samples=20_000, seed=3)
        assert found.samples == 20_000 and 0 < found.classes_error[0, 1] < 0.004
        assert abs(found.classes[0, 1] - expected) < 4 * found.classes_error[0, 1]


def test_the_temperature_falls_from_one_to_a_half() -> None:
    assert temperature(0, 10) == 1 and temperature(10, 10) == 0.5 and temperature(30, 10) == 0.5
    assert temperature(5, 10) == pytest.approx(0.7071068, abs=1e-7)


def test_the_concept_loss_is_a_likelihood_and_keeps_log_m() -> None:
    """Draws that do not spread: the loss of an independent model, which the published code undercuts by log M."""
    logits = torch.randn(6, 1, 4, dtype=torch.float64).expand(-1, 100, -1)
    truth = (torch.rand(6, 4) > 0.5).double()
    plain = -(torch.where(truth > 0, torch.sigmoid(logits[:, 0]), torch.sigmoid(-logits[:, 0]))).log().sum(1).mean()
    close(concept_loss(logits, truth), plain, 1e-12)
    spread = torch.randn(2, 50, 4, dtype=torch.float64)
    each = []
    for draws, said in zip(spread, truth, strict=False):
        likely = [torch.where(said > 0, torch.sigmoid(eta), torch.sigmoid(-eta)).prod() for eta in draws]
        each.append(torch.stack(likely).mean().log())
    by_hand = -torch.stack(each).mean()
    close(concept_loss(spread, truth[:2]), by_hand, 1e-12)


def test_a_logit_of_sixty_still_has_a_gradient() -> None:
    logits = torch.full((1, 1, 2), -60.0, requires_grad=True)
    concept_loss(logits, torch.ones(1, 2)).backward()
    assert logits.grad is not None and float(logits.grad[0, 0, 0]) == pytest.approx(-1.0)


def test_jitter_is_added_to_the_matrix_that_needs_it_and_reported() -> None:
    singular = torch.ones(3, 3, dtype=torch.float64)
    found = gaussian.factorised(torch.stack([SIGMA, singular]))
    close(found.lower[0], L, 1e-12)
    assert found.jitter[0] == 0 and 0 < found.jitter[1] < 1e-6
    close(found.lower[1] @ found.lower[1].T, singular, 1e-6)


def test_what_is_no_covariance_is_refused() -> None:
    with pytest.raises(gaussian.NotPositiveDefinite, match="1 of 2 covariance matrices"):
        gaussian.factorised(torch.stack([SIGMA, -SIGMA]))
    with pytest.raises(gaussian.NotPositiveDefinite):
        gaussian.factorised(torch.full((1, 2, 2), torch.nan))
