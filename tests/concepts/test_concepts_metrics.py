"""Metrics against definitions written out."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from fanlight_models.concepts import metrics


def data(n: int = 60, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    p = (torch.rand(n, generator=chance, dtype=torch.float64) * 20).round() / 20  # with ties
    return p, (torch.rand(n, generator=chance, dtype=torch.float64) < p).double()


@pytest.mark.parametrize("seed", [0, 1])
def test_auroc_is_the_share_of_pairs_in_order(seed: int) -> None:
    p, truth = data(seed=seed)
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(p[truth > 0].tolist(), p[truth == 0].tolist())]
    assert metrics.auroc(p, truth) == pytest.approx(sum(pairs) / len(pairs))
    assert math.isnan(metrics.auroc(p, torch.ones_like(p)))


def test_average_precision_is_a_sum_over_thresholds() -> None:
    p, truth = data()
    total, last = 0.0, 0.0
    for t in sorted(set(p.tolist()), reverse=True):
        said = p >= t
        recall = float(truth[said].sum() / truth.sum())
        total += (recall - last) * float(truth[said].mean())
        last = recall
    assert metrics.average_precision(p, truth) == pytest.approx(total)


def test_calibration_is_a_weighted_gap_over_ten_bins() -> None:
    p, truth = data()
    gaps = []
    for b in range(10):
        inside = ((p * 10).long().clamp(max=9) == b).nonzero()[:, 0]
        if len(inside):
            gaps.append((len(inside) / len(p), abs(float(p[inside].mean() - truth[inside].mean()))))
    assert metrics.calibration_error(p, truth) == pytest.approx(sum(w * g for w, g in gaps))
    assert metrics.calibration_error(p, truth, "l2") == pytest.approx(math.sqrt(sum(w * g * g for w, g in gaps)))
    with pytest.raises(ValueError, match="l1 or l2"):
        metrics.calibration_error(p, truth, "max")


def test_concepts() -> None:
    p = torch.tensor([[0.9, 0.2, 0.6], [0.4, 0.1, 0.7]])
    truth = torch.tensor([[1, 0, 1], [1, 0, 0]])
    found = metrics.concept_metrics(p, truth)
    assert found["accuracy"] == pytest.approx(4 / 6) and found["complete"] == 0.5
    assert found["jaccard"] == pytest.approx(2 / 4)
    assert found["brier"] == pytest.approx((0.01 + 0.04 + 0.16 + 0.36 + 0.01 + 0.49) / 6)
    assert found["auroc"] == pytest.approx(0.0)  # only the third concept has both values


def test_classes() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8], [0.5, 0.4, 0.1]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 1])
    found = metrics.class_metrics(p, labels)
    assert found["accuracy"] == 0.75 and found["jaccard"] == pytest.approx(3 / 5)
    assert found["brier"] == pytest.approx(
        (0.09 + 0.04 + 0.01 + 0.09 + 0.36 + 0.09 + 0.01 + 0.01 + 0.04 + 0.25 + 0.36 + 0.01) / 4
    )
    assert found["auroc"] == 1.0


def test_intervals_hold_the_mean_and_narrow_with_more_cases() -> None:
    values = torch.randn(400, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean, low, high = metrics.bootstrap(values)
    torch.testing.assert_close(mean, values.mean(0))
    torch.testing.assert_close(high - low, 2 * 1.96 * values.std(0) / 20, rtol=0.12, atol=0)
    assert (metrics.bootstrap(values[:100])[2] - metrics.bootstrap(values[:100])[1] > high - low).all()


def test_the_norm_of_a_covariance() -> None:
    assert metrics.covariance_norm(torch.tensor([[[3.0, 0.0], [0.0, 4.0]]])) == pytest.approx(2.5)
