"""On the synthetic data, smaller: an answer is worth more than itself where concepts have a covariance, and nothing more where they have none."""

from __future__ import annotations

import pytest
import torch

from fanlight_models.concepts import synthetic
from fanlight_models.concepts.bundle import build
from fanlight_models.concepts.curves import curve
from fanlight_models.concepts.strategies import Strategy
from fanlight_models.concepts.training import Plan, TensorCases, train

K, STEPS = 30, 6


@pytest.mark.slow
def test_an_answer_moves_other_concepts_in_scbm_alone() -> None:
    """Asking about one of K concepts of accuracy near 1/2 gains 1 / (2 K) by itself. The reference run of the published code gained 0.0163 with the
    hard CBM, 0.0203 with the amortized and 0.0212 with the global covariance, where 1 / (2 K) is 0.0167."""
    torch.set_num_threads(1)
    data = synthetic.generate(42, n=5000, k=K, p=300)
    x, concepts, labels = (torch.from_numpy(part) for part in (data.x, data.concepts, data.labels))
    cases = TensorCases(x[data.train].float(), concepts[data.train].float(), labels[data.train])
    slope = {}
    for kind, options in (("hard-cbm", {}), ("scbm", {"covariance": "amortized"}), ("scbm", {"covariance": "global"})):
        torch.manual_seed(42)
        model = build(
            {"kind": kind, "concepts": K, "classes": 2, "encoder": {"kind": "fcnn", "inputs": 300}, **options}
        )
        weight = 1.0 if options.get("covariance") == "amortized" else 0.0
        train(model, cases, Plan(epochs=15, rate=1e-3, precision_weight=weight))
        model.requires_grad_(False)
        test = model.read(x[data.test].float())
        found = curve(model, test, concepts[data.test], labels[data.test], steps=STEPS, strategy=Strategy("percentile"))
        mean = found.concepts.mean(0)
        slope[options.get("covariance", kind)] = float(mean[-1] - mean[0]) / STEPS
    alone = 1 / (2 * K)
    assert abs(slope["hard-cbm"] / alone - 1) < 0.05, slope
    assert slope["amortized"] > 1.1 * alone and slope["global"] > 1.1 * alone, slope
