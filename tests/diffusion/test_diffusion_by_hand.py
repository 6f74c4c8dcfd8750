"""Numbers of the toys derived a second time, with numpy and paper alone: no estimator, denoiser or world of this package takes part in it.

Only at the end of the last test what ships is compared with what came of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fanlight_models.worlds.scenes import drawing

Array = np.ndarray[Any, np.dtype[np.float64]]


def sigmoid(alpha: Array) -> Array:
    return 1 / (1 + np.exp(-alpha))


# --- a sum of two signs: x = a + b + 0.5 n


def predicted(z: Array, alpha: Array, centres: Sequence[float], variance: float) -> Array:
    """The optimal noise prediction of a mixture of Gaussians with equal weights, by Bayes' rule at every point."""
    g = sigmoid(alpha)
    spread = g * variance + (1 - g)
    logs = np.stack([-((z - np.sqrt(g) * m) ** 2) / (2 * spread) for m in centres])
    weight = np.exp(logs - logs.max(0))
    weight /= weight.sum(0)
    # E[eps | z, component] = sqrt(1 - g) (z - sqrt(g) m) / spread
    return np.asarray(
        sum(w * np.sqrt(1 - g) * (z - np.sqrt(g) * m) / spread for w, m in zip(weight, centres, strict=True))
    )


def integrals(x: float, less: Sequence[float], more: Sequence[float], variance: float = 0.25) -> tuple[float, float]:
    """Signed and orthogonal information of one number: trapezoid over log-SNR -10 to 12, Gauss-Hermite over the noise."""
    alphas = np.linspace(-10, 12, 2201)
    points, weights = np.polynomial.hermite_e.hermegauss(160)
    weights = weights / weights.sum()
    alpha, eps = alphas[:, None], points[None]
    z = np.sqrt(sigmoid(alpha)) * x + np.sqrt(1 - sigmoid(alpha)) * eps
    one, other = (predicted(z, np.broadcast_to(alpha, z.shape), c, variance) for c in (less, more))
    signed = (((eps - one) ** 2 - (eps - other) ** 2) * weights).sum(1)
    moved = (((one - other) ** 2) * weights).sum(1)
    return 0.5 * float(np.trapezoid(signed, alphas)), 0.5 * float(np.trapezoid(moved, alphas))


NOTHING, A, BOTH = (2.0, 0.0, 0.0, -2.0), (2.0, 0.0), (2.0,)


@pytest.mark.parametrize(
    ("x", "less", "more", "signed", "orthogonal"),
    [
        (2.0, NOTHING, A, 0.692744, 0.139958),
        (2.0, NOTHING, BOTH, 1.385533, 1.021337),
        (2.0, A, BOTH, 0.692789, 0.435504),
        (1.0, NOTHING, BOTH, 0.287638, 4.147776),
    ],
)
def test_the_integrals_of_the_sum_of_two_signs(
    x: float, less: Any, more: Any, signed: float, orthogonal: float
) -> None:
    found = integrals(x, less, more)
    assert found[0] == pytest.approx(signed, abs=2e-6) and found[1] == pytest.approx(orthogonal, abs=2e-6)
    # and the signed one is the log-ratio of the densities, to what the ends of the range leave out
    density = [np.mean([math.exp(-((x - m) ** 2) / 0.5) for m in centres]) for centres in (less, more)]
    assert found[0] == pytest.approx(math.log(density[1] / density[0]), abs=1e-3)


# --- the Gaussian: x = A + B + n, variances 1, 1, 0.25; x = 1.5, A = 1, B = 0.75


def test_the_gaussian_in_closed_form() -> None:
    # log N(1.5; 1, 1.25) - log N(1.5; 0, 2.25) = ln(2.25 / 1.25) / 2 + 1.5^2 / 4.5 - 0.5^2 / 2.5
    of_a = 0.5 * math.log(2.25 / 1.25) + 0.5 - 0.1
    of_both = 0.5 * math.log(2.25 / 0.25) + 0.5 - 0.25**2 / 0.5
    assert (round(of_a, 6), round(of_both, 6)) == (0.693893, 1.473612)
    assert (round(0.5 * math.log(2.25 / 1.25), 6), round(0.5 * math.log(9), 6)) == (0.293893, 1.098612)
    # the same from the squared error of the optimal prediction, whose mean over the noise is known:
    # E (eps - eps^)^2 = (g v / D)^2 + g (1 - g) (x - m)^2 / D^2 with D = g v + 1 - g
    alphas = np.linspace(-24, 30, 54_001)
    g = sigmoid(alphas)

    def energy(mean: float, variance: float) -> Array:
        d = g * variance + 1 - g
        return np.asarray((g * variance / d) ** 2 + g * (1 - g) * (1.5 - mean) ** 2 / d**2)

    for mean, variance, wanted in ((1.0, 1.25, of_a), (1.75, 0.25, of_both)):
        found = 0.5 * np.trapezoid(energy(0, 2.25) - energy(mean, variance), alphas)
        assert found == pytest.approx(wanted, abs=1e-6)


# --- five pixels: [a, b, OR(a, b) as 0 or 1, a b, background], noise 0.5, the picture is that of a = b = +1 without noise


def test_five_pixels_by_plain_sampling() -> None:
    pairs = list(itertools.product((1, -1), (1, -1)))
    means = np.array([[a, b, float(1 in (a, b)), a * b, 0] for a, b in pairs], np.float64)
    x = means[pairs.index((1, 1))]
    kept = {"": pairs, "a": [p for p in pairs if p[0] == 1], "b": [p for p in pairs if p[1] == 1], "ab": [(1, 1)]}
    rng = np.random.default_rng(0)
    alphas = np.linspace(-10, 12, 221)
    energy = {name: np.zeros(5) for name in kept}
    for n, alpha in enumerate(alphas):
        g = 1 / (1 + math.exp(-alpha))
        d = g * 0.25 + 1 - g
        eps = rng.standard_normal((4000, 5))
        eps = np.concatenate([eps, -eps])
        z = math.sqrt(g) * x + math.sqrt(1 - g) * eps
        for name, chosen in kept.items():
            centres = means[[pairs.index(p) for p in chosen]]
            logs = -(((z[:, None] - math.sqrt(g) * centres[None]) ** 2).sum(2)) / (2 * d)
            weight = np.exp(logs - logs.max(1, keepdims=True))
            weight /= weight.sum(1, keepdims=True)
            said = math.sqrt(1 - g) / d * (z - math.sqrt(g) * weight @ centres)
            half = 0.5 if n in (0, len(alphas) - 1) else 1.0  # trapezoid
            energy[name] += 0.5 * half * (alphas[1] - alphas[0]) * ((eps - said) ** 2).mean(0)
    one, other, both = (energy[""] - energy[n] for n in ("a", "b", "ab"))
    np.testing.assert_allclose(one, [0.440, 0.090, 0.042, 0.127, 0], atol=0.015)
    np.testing.assert_allclose(both, [0.440, 0.438, 0.042, 0.475, 0], atol=0.015)
    assert one.sum() == pytest.approx(math.log(2), abs=0.02) and both.sum() == pytest.approx(math.log(4), abs=0.03)
    shared = np.minimum(one, other)
    np.testing.assert_allclose(shared, [0.091, 0.090, 0.042, 0.127, 0], atol=0.015)
    np.testing.assert_allclose(one - shared, [0.349, 0, 0, 0, 0], atol=0.015)
    np.testing.assert_allclose(both - one - other + shared, [0, 0, 0, 0.347, 0], atol=0.015)


# --- scenes: 264 places of 8 classes in either half, drawn here from their description


def half() -> tuple[Array, list[tuple[int, int]]]:
    """(264, 16, 8, 3) pictures of a half without noise, and colour and shape of each. Both halves look alike."""
    colours = ((1, -0.8, -0.8), (-0.8, 0.9, -0.8), (-0.6, -0.4, 1), (1, 1, -0.8))
    row, column = np.mgrid[0:6, 0:6] - 2.5
    disc = row**2 + column**2 <= 7.6
    cross = (np.abs(row) < 1) | (np.abs(column) < 1)
    pictures, classes = [], []
    for (c, colour), (s, shape) in itertools.product(enumerate(colours), enumerate((disc, cross))):
        for top, start in itertools.product(range(11), range(3)):
            picture = np.full((16, 8, 3), -0.9)
            picture[top : top + 6, start : start + 6][shape] = colour
            pictures.append(picture)
            classes.append((c, s))
    return np.stack(pictures), classes


def test_what_a_word_says_in_the_scenes_is_the_logarithm_of_what_it_rules_out() -> None:
    pictures, classes = half()
    assert len(pictures) == 264
    rng = np.random.default_rng(5)
    colour, shape = (np.array([c[n] for c in classes]) for n in (0, 1))
    for n in rng.choice(264, 6, replace=False):
        x = pictures[n] + 0.05 * rng.standard_normal((16, 8, 3))
        logs = -((x - pictures) ** 2).sum((1, 2, 3)) / (2 * 0.05**2)

        def mean(among: Any, logs: Any = logs) -> float:
            """log p(x | components), all equally likely."""
            top = logs[among].max()
            return float(top + math.log(np.exp(logs[among] - top).mean()))

        own_colour, own_shape = colour == colour[n], shape == shape[n]
        everything = np.ones(264, bool)
        assert mean(own_colour & own_shape) - mean(own_shape) == pytest.approx(math.log(4), abs=1e-6)
        assert mean(own_colour & own_shape) - mean(own_colour) == pytest.approx(math.log(2), abs=1e-6)
        assert mean(own_colour & own_shape) - mean(everything) == pytest.approx(math.log(8), abs=1e-6)
    # ours has the same pictures, in whatever order
    ours = drawing.halves(16)[0].reshape(264, -1)
    other = pictures.transpose(0, 3, 1, 2).reshape(264, -1)
    np.testing.assert_allclose(ours[np.lexsort(ours.T)], other[np.lexsort(other.T)], atol=1e-6)
