"""The confidence region: known solutions, SLSQP as an oracle, bounds that hold, and how long it takes."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import chi2

from fanlight_models.concepts.condition import answered, conditioned
from fanlight_models.concepts.confidence import LEAST, chi_square_quantile, region

L = torch.tensor([[1, 0, 0], [0.6, 0.8, 0], [-0.3, 0.4, 1.2]], dtype=torch.float64)
MU = torch.tensor([0.5, -0.2, 0.1], dtype=torch.float64)
SIGMA = L @ L.T


def solve(concepts, values, mu=MU, sigma=SIGMA, level=0.99):
    index = torch.tensor(concepts)
    said = torch.tensor([values], dtype=torch.float64)
    return region(mu[index][None], sigma[index][:, index][None], said, torch.ones_like(said, dtype=torch.bool), level)


def slsqp(mu, sigma, values, level=0.99):
    """The problem as it is written, one set."""
    sign = 2 * values - 1
    precision, q = np.linalg.inv(sigma), chi2.ppf(level, len(mu))
    start = mu + sign * np.sqrt(q / (sign @ precision @ sign))
    inside = {
        "type": "ineq",
        "fun": lambda e: q - (e - mu) @ precision @ (e - mu),
        "jac": lambda e: -2 * precision @ (e - mu),
    }
    bounds = [(m + 1e-4, None) if v else (None, m - 1e-4) for m, v in zip(mu, values, strict=True)]
    return minimize(
        lambda e: np.logaddexp(0, -sign * e).sum(),
        start,
        jac=lambda e: -sign / (1 + np.exp(sign * e)),
        constraints=[inside],
        bounds=bounds,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_chi_square_quantiles(level):
    degrees = torch.arange(1, 113)
    torch.testing.assert_close(
        chi_square_quantile(level, degrees), torch.from_numpy(chi2.ppf(level, np.arange(1, 113))), rtol=1e-9, atol=0
    )
    if level == 0.99:
        known = torch.tensor([6.6348966010, 9.2103403720, 11.3448667301], dtype=torch.float64)
        torch.testing.assert_close(chi_square_quantile(level, degrees[:3]), known, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("concepts", "values", "start", "logits", "objective", "kappa"),
    [
        ([0], [1], None, [3.0758293035], None, None),
        ([0], [0], None, [-2.0758293035], None, None),
        ([0, 1], [1, 0], 1.3572280849, [1.7326693499, -1.6789913345], 0.3338690238, 0.0453560491),
        ([0, 1], [1, 1], 2.7144561698, [3.0657443540, 2.6361615465], 0.1147512757, 0.0329927009),
        ([0, 1, 2], [1, 0, 1], 1.1862188893, [1.3504489695, -1.3564936070, 2.0188724309], 0.5842883014, 0.0561348513),
    ],
)  # fmt: skip
def test_known_solutions(concepts, values, start, logits, objective, kappa):
    found = solve(concepts, values)
    torch.testing.assert_close(found.logits[0], torch.tensor(logits, dtype=torch.float64), rtol=0, atol=1e-6)
    for value, known in ((found.start, start), (found.objective, objective), (found.kappa, kappa)):
        if known is not None:
            assert float(value) == pytest.approx(known, abs=1e-8)
    assert not found.bound.any() and not found.bisected.any()


def problems(n, count, seed, rank=3):
    """Random sets with strong correlations, so that some bounds hold."""
    draw = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        a = draw.normal(size=(n, rank))
        sigma = a @ a.T + np.diag(draw.uniform(0.05, 1.0, n))
        out.append((draw.normal(0, 2, n), sigma, draw.integers(0, 2, n).astype(float)))
    return out


def together(every):
    mean, sigma, values = (torch.from_numpy(np.stack(part)) for part in zip(*every, strict=True))
    return mean, sigma, values, torch.ones_like(values, dtype=torch.bool)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_it_agrees_with_slsqp_where_that_converges(n):
    every = problems(n, 40, n)
    found = region(*together(every))
    compared = 0
    for row, (mu, sigma, values) in enumerate(every):
        oracle = slsqp(mu, sigma, values)
        assert found.objective[row] <= oracle.fun + 1e-6 or not oracle.success
        if oracle.success:
            compared += 1
            assert float(found.objective[row]) == pytest.approx(oracle.fun, abs=1e-6)
    assert compared >= 30


def test_every_solution_fulfils_the_conditions_of_an_optimum():
    for n in (1, 3, 8, 20):
        every = problems(n, 60, 100 + n)
        mean, sigma, values, valid = together(every)
        found = region(mean, sigma, values, valid)
        sign = 2 * values - 1
        x = sign * (found.logits - mean)
        pressed = sign * torch.linalg.solve(sigma, (found.logits - mean)[..., None])[..., 0]
        force = -torch.sigmoid(-sign * found.logits) + found.kappa[:, None] * pressed
        q = torch.from_numpy(chi2.ppf(0.99, np.full(60, n)))
        assert (x >= found.least[:, None] * (1 - 1e-9)).all()  # no answer moves its own concept the other way
        torch.testing.assert_close((x * pressed).sum(1), q, rtol=1e-8, atol=0)  # the ellipsoid is reached
        assert (found.kappa > 0).all()
        assert force[~found.bound].abs().max() < 1e-8 * (1 + found.kappa.max())
        assert (force[found.bound] > -1e-9).all()


def test_without_the_bounds_an_answer_would_move_its_concept_the_wrong_way():
    sigma = torch.tensor([[1.0, 1.9], [1.9, 4.0]], dtype=torch.float64)  # correlation 0.95
    found = solve([0, 1], [1, 0], torch.tensor([-6.0, 6.0], dtype=torch.float64), sigma)
    mu = np.array([-6.0, 6.0])
    assert found.bound.any()
    moved = found.logits[0].numpy() - mu
    assert moved[0] >= LEAST - 1e-12 and moved[1] <= -LEAST + 1e-12
    oracle = slsqp(mu, sigma.numpy(), np.array([1.0, 0.0]))
    assert float(found.objective) <= oracle.fun + 1e-6


@pytest.mark.parametrize("n", [2, 6])
def test_the_slow_way_finds_the_same(n):
    from fanlight_models.concepts import confidence

    mean, sigma, values, valid = together(problems(n, 8, 7 + n, rank=1))
    fast = region(mean, sigma, values, valid)
    sign = 2 * values - 1
    precision = torch.linalg.inv(sigma) * sign[:, :, None] * sign[:, None, :]
    problem = confidence._Problem(
        sign * mean,
        precision,
        chi_square_quantile(0.99, torch.full((8,), n)),
        fast.least[:, None].expand(-1, n),
        valid,
    )
    x, kappa = confidence._bisected(problem)
    torch.testing.assert_close(mean + sign * x, fast.logits, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(kappa, fast.kappa, rtol=1e-6, atol=0)


def test_sets_of_different_sizes_are_solved_together_as_alone():
    torch.manual_seed(0)
    a = torch.randn(7, 7, dtype=torch.float64)
    sigma, mu = a @ a.T + 0.1 * torch.eye(7), torch.randn(7, dtype=torch.float64)
    known = torch.rand(12, 7) < 0.5
    known[0] = False
    value = (torch.rand(12, 7) < 0.5).double()
    said = answered(known)
    whole = sigma.expand(12, 7, 7)
    found = region(said.pick(mu.expand(12, 7)), said.block(whole), said.pick(value), said.valid)
    for row in range(1, 12):
        index = known[row].nonzero()[:, 0]
        alone = solve(index.tolist(), value[row, index].tolist(), mu, sigma)
        torch.testing.assert_close(found.logits[row, : len(index)], alone.logits[0], rtol=1e-9, atol=1e-9)
    assert torch.isfinite(conditioned(mu.expand(12, 7), whole, said, found.logits).mean).all()


def test_an_answer_pushes_less_once_another_is_given():
    """The region has as many degrees of freedom as there are answers: known, and not an error."""
    alone = solve([0], [1]).logits[0, 0]
    beside = solve([0, 1, 2], [1, 0, 1]).logits[0, 0]
    assert beside < alone


@pytest.mark.parametrize("level", [0.0, 1.0, float("nan")])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        solve([0], [1], level=level)


@pytest.mark.slow
def test_a_thousand_sets_of_ten_take_a_fiftieth_of_slsqp():
    every = problems(10, 1000, 5)
    given = together(every)
    region(*given)
    began = time.perf_counter()
    region(*given)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    for mu, sigma, values in every[:100]:
        slsqp(mu, sigma, values)
    theirs = 10 * (time.perf_counter() - began)
    assert theirs / ours >= 50, f"{theirs:.2f} s against {ours:.3f} s"
