"""The synthetic data of the paper: its fingerprint, and what must be true of any Gaussian."""

from __future__ import annotations

import numpy as np
import pytest

from fanlight_models.concepts import synthetic


@pytest.fixture(scope="module")
def small() -> synthetic.Synthetic:
    return synthetic.generate(42, n=1000, k=10, p=20)


def test_the_covariance_comes_from_the_same_stream(small: synthetic.Synthetic) -> None:
    assert small.covariance[0, 0] == pytest.approx(7.129668053, abs=1e-9)
    assert small.covariance[0, 1] == pytest.approx(-4.085788533, abs=1e-9)
    assert small.labels.mean() == 0.5


def test_the_fingerprint_where_lapack_has_the_same_signs(small: synthetic.Synthetic) -> None:
    if "".join(map(str, small.concepts[0])) != "1000010010":
        pytest.skip("this LAPACK chooses other signs of singular vectors, so that other data result")
    assert "".join(map(str, small.concepts[1])) == "0100011100"
    mean = (0.484, 0.513, 0.509, 0.519, 0.510, 0.512, 0.505, 0.507, 0.497, 0.508)
    np.testing.assert_allclose(small.concepts.mean(0), mean, atol=5e-4)
    np.testing.assert_allclose(small.x[0, :4], synthetic.FINGERPRINT, atol=1e-5)


def test_signs_agree_as_often_as_their_correlation_says(small: synthetic.Synthetic) -> None:
    rho = small.covariance[0, 1] / np.sqrt(small.covariance[0, 0] * small.covariance[1, 1])
    assert rho == pytest.approx(-0.449117, abs=1e-6)
    assert synthetic.agreement(rho) == pytest.approx(0.351739, abs=1e-6)
    many = synthetic.generate(3, n=20_000, k=6, p=4)
    deviation = np.sqrt(np.diag(many.covariance))
    for i in range(6):
        for j in range(i):
            expected = synthetic.agreement(many.covariance[i, j] / (deviation[i] * deviation[j]))
            found = (many.concepts[:, i] == many.concepts[:, j]).mean()
            assert abs(found - expected) < 4.5 * np.sqrt(expected * (1 - expected) / 20_000)


def test_inputs_are_scaled_and_the_split_covers_everything_once(small: synthetic.Synthetic) -> None:
    np.testing.assert_allclose(small.x.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(small.x.std(0), 1, atol=1e-12)
    assert (len(small.train), len(small.validation), len(small.test)) == (600, 200, 200)
    every = np.concatenate([small.train, small.validation, small.test])
    assert np.array_equal(np.sort(every), np.arange(1000))


def test_nobody_elses_random_stream_is_touched() -> None:
    np.random.seed(1)
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    synthetic.generate(2, n=50, k=3, p=4)
    assert np.array_equal(np.random.get_state()[1], before)  # type: ignore[index]
