"""The synthetic data of the stochastic bottleneck's paper, from the same calls of numpy's legacy random stream in the same order.

Concepts are signs of a Gaussian whose covariance has rank ten plus a diagonal; the target is whether a weighted sum of them exceeds its median;
inputs are a fixed random network of the Gaussian that narrows to five units, plus noise. Therefore concepts cannot be predicted much better than
62 %. Where LAPACK chooses other signs of singular vectors, other data result, as good as these (`fingerprint`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RANK = 100  # of the random layers' singular values, whatever k is
FINGERPRINT = (-0.51456, -0.797919, -1.673163, 0.145149)
"""X[0, :4] of `generate(42, n=1000, k=10, p=20)` with numpy 2.4.6 and the OpenBLAS of its wheels."""


@dataclass(frozen=True, eq=False)
class Synthetic:
    """x (n, p), concepts (n, k) in {0, 1}, labels (n,) in {0, 1}, covariance (k, k) of the Gaussian; train, validation, test: row numbers."""

    x: Floats
    concepts: NDArray[np.int64]
    labels: NDArray[np.int64]
    covariance: Floats
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


def generate(seed: int, n: int = 50_000, k: int = 100, p: int = 1500) -> Synthetic:
    """n cases of k concepts and p inputs; 60 / 20 / 20 % train, validation, test. The defaults take 1.8 GB while it runs."""
    stream = np.random.RandomState(seed)  # the stream that np.random.seed(seed) starts
    loadings = stream.randn(k, 10)
    covariance = loadings @ loadings.T + np.diag(stream.rand(k))
    z = stream.multivariate_normal(np.zeros(k), covariance, n)
    concepts = (z >= 0).astype(np.int64)
    weights = stream.uniform(0, 1, (1, k))
    score = (concepts @ weights.T)[:, 0]
    labels = (score >= np.median(score)).astype(np.int64)
    layers = [_low_rank(stream, *shape, RANK) for shape in ((k, 5), (5, 5), (5, p))]
    for width in (5, 5, p):  # biases of width zero: they are nothing, but drawing them moves the stream on
        stream.uniform(0, 0, width)
    x = z
    for number, layer in enumerate(layers):
        x = x @ layer
        if number < len(layers) - 1:
            x = np.maximum(x, 0)
    x = _scaled(x)
    x = _scaled(x + stream.normal(0, 1, x.shape))
    order = np.random.RandomState(seed).permutation(n)
    rest = n - int(0.6 * n)
    outside, train = order[:rest], order[rest:]
    again = np.random.RandomState(2 * seed).permutation(rest)
    half = int(0.5 * rest)
    later, first = again[: rest - half], again[rest - half :]
    return Synthetic(x, concepts, labels, covariance, train, outside[first], outside[later])


def _low_rank(stream: np.random.RandomState, rows: int, columns: int, rank: int, tail: float = 0.5) -> Floats:
    """A random matrix whose singular values fall as a bell of width `rank` with an exponential tail."""
    size = min(rows, columns)
    left, _ = np.linalg.qr(stream.standard_normal((rows, size)))
    right, _ = np.linalg.qr(stream.standard_normal((columns, size)))
    place = np.arange(size) / rank
    values = (1 - tail) * np.exp(-(place**2)) + tail * np.exp(-0.1 * place)
    return np.asarray((left * values) @ right.T, np.float64)


def _scaled(x: Floats) -> Floats:
    """Each column to mean 0 and deviation 1; a constant one to 0."""
    deviation = x.std(0)
    return np.asarray((x - x.mean(0)) / np.where(deviation > 0, deviation, 1.0), np.float64)


def agreement(correlation: float) -> float:
    """P(two signs of a centred bivariate Gaussian are equal): 1/2 + asin(rho) / pi."""
    return float(0.5 + np.arcsin(correlation) / np.pi)
