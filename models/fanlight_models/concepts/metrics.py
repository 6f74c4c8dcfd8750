"""How good predictions of classes and concepts are: accuracy, Jaccard, AUROC, AUPR, Brier, calibration. All in float64, from probabilities.

Per-concept figures are averaged over the concepts that have both values among the cases; the paper's code rounds each to four digits first, this
one does not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

BINS = 10


def auroc(p: Tensor, truth: Tensor) -> float:
    """Area under the ROC curve of p (n,) for truth (n,) in {0, 1}; ties count half; NaN where one value is missing."""
    yes = truth > 0.5
    positive, negative = int(yes.sum()), int((~yes).sum())
    if not positive or not negative:
        return float("nan")
    _, place, count = torch.unique(p.double(), return_inverse=True, return_counts=True)
    rank = (count.cumsum(0) - (count - 1) / 2)[place]
    return float((rank[yes].sum() - positive * (positive + 1) / 2) / (positive * negative))


def average_precision(p: Tensor, truth: Tensor) -> float:
    """Area under precision over recall as a sum of steps at distinct thresholds; NaN where nothing is true."""
    positive = float((truth > 0.5).sum())
    if not positive:
        return float("nan")
    order = torch.argsort(p, descending=True, stable=True)
    ordered, right = p[order], (truth[order] > 0.5).double().cumsum(0)
    last = torch.cat([ordered[1:] != ordered[:-1], torch.ones(1, dtype=torch.bool)])
    precision = right[last] / (torch.arange(1, len(p) + 1)[last])
    recall = right[last] / positive
    return float((precision * torch.diff(recall, prepend=torch.zeros(1, dtype=torch.float64))).sum())


def calibration_error(confidence: Tensor, right: Tensor, norm: str = "l1", bins: int = BINS) -> float:
    """Difference of confidence (n,) in 0..1 and how often it is right (n,), over equal bins weighted by their cases.

    l1: the expected calibration error; l2: root of the mean square (TL-ECE)."""
    if norm not in ("l1", "l2"):
        raise ValueError(f"“{norm}” is no norm of a calibration error: l1 or l2.")
    confidence, right = confidence.double(), right.double()
    place = (confidence * bins).long().clamp(0, bins - 1)
    count = torch.bincount(place, minlength=bins).double()
    gap = torch.bincount(place, confidence - right, minlength=bins) / count.clamp_min(1)
    share = count / len(confidence)
    return float((gap.abs() * share).sum() if norm == "l1" else (gap**2 * share).sum().sqrt())


def concept_metrics(p: Tensor, truth: Tensor) -> dict[str, float]:
    """p and truth (n, K): accuracy, complete (all K right), jaccard (over all decisions), auroc, aupr, brier, ece, tl-ece."""
    p, truth = p.double(), truth.double()
    said, true = p > 0.5, truth > 0.5

    def each(measure: Callable[[Tensor, Tensor], float]) -> float:
        found = torch.tensor([measure(p[:, k], truth[:, k]) for k in range(p.shape[1])], dtype=torch.float64)
        return float(found.nanmean())

    return {
        "accuracy": float((said == true).double().mean()),
        "complete": float((said == true).all(1).double().mean()),
        "jaccard": float((said & true).sum() / (said | true).sum().clamp_min(1)),
        "auroc": each(auroc),
        "aupr": each(average_precision),
        "brier": float(((p - truth) ** 2).mean()),
        "ece": each(calibration_error),
        "tl-ece": each(lambda a, b: calibration_error(a, b, "l2")),
    }


def class_metrics(p: Tensor, labels: Tensor) -> dict[str, float]:
    """p (n, C), labels (n,): accuracy, jaccard, auroc (one against the rest, mean over the classes that occur), aupr, brier (sum over classes),
    ece and tl-ece of the highest class."""
    p = p.double()
    right = p.argmax(1) == labels
    top = p.amax(1)
    one = torch.nn.functional.one_hot(labels, p.shape[1]).double()
    rest = [auroc(p[:, c], one[:, c]) for c in range(p.shape[1])]
    precision = [average_precision(p[:, c], one[:, c]) for c in range(p.shape[1])]
    hits = int(right.sum())
    return {
        "accuracy": float(right.double().mean()),
        "jaccard": hits / (2 * len(labels) - hits),
        "auroc": float(torch.tensor(rest).nanmean()),
        "aupr": float(torch.tensor(precision).nanmean()),
        "brier": float(((p - one) ** 2).sum(1).mean()),
        "ece": calibration_error(top, right),
        "tl-ece": calibration_error(top, right, "l2"),
    }


def covariance_norm(covariance: Tensor) -> float:
    """Frobenius norm over the root of the number of entries, (..., K, K)."""
    return float(covariance.double().square().mean().sqrt())


def bootstrap(values: Tensor, draws: int = 1000, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and 95 % percentile interval over resampled cases: values (n, ...) -> three of (...)."""
    chance = torch.Generator().manual_seed(seed)
    flat = values.double().reshape(len(values), -1)
    weight = torch.stack(
        [
            torch.bincount(torch.randint(len(flat), (len(flat),), generator=chance), minlength=len(flat))
            for _ in range(draws)
        ]
    )
    means = weight.double() @ flat / len(flat)
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=torch.float64), dim=0)
    shape = values.shape[1:]
    return flat.mean(0).reshape(shape), low.reshape(shape), high.reshape(shape)
