"""Which logits an answer stands for: the most agreeable ones that the model holds possible (the confidence region of the paper).

    min over eta of sum_i BCE(sigmoid(eta_i), c_i)   with (eta - mu)^T P (eta - mu) <= q   and   s_i (eta_i - mu_i) >= 1e-4,

s_i = +1 for yes, -1 for no: an answer never moves its own concept the other way. q is the chi-square quantile with as many degrees of freedom as
there are answers. In x = s (eta - mu) and m = s mu the objective is sum softplus(-(m + x)), which falls in every x, so the ellipsoid is always
reached and a multiplier kappa > 0 exists:

    -sigmoid(-(m + x)) + kappa P' x = lambda >= 0,   x >= 1e-4,   lambda (x - 1e-4) = 0,   x^T P' x = q.

All rows of a batch are solved together: Newton's method on these equations with an active set for the bounds, first with quick changes of that set,
then with careful ones; and for rows where neither ends, bisection on kappa around a projected Newton method. float64, no loop over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.concepts.gaussian import factorised

LEVEL = 0.99
LEAST = 1e-4
TOLERANCE = 1e-10
NEWTON, CAREFUL, HALVINGS, INNER = 16, 120, 70, 60  # steps at most


def chi_square_quantile(level: float, degrees: Tensor) -> Tensor:
    """Where the chi-square distribution function reaches `level`, elementwise: bisection, then Newton. degrees: positive whole numbers.

    Errors: ValueError for a level outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"A confidence level lies between 0 and 1, not {level}.")
    half = degrees.double() / 2
    low, high = torch.zeros_like(half), half * 4 + 60.0
    while bool((torch.special.gammainc(half, high / 2) < level).any()):
        high = high * 2
    for _ in range(60):
        middle = (low + high) / 2
        below = torch.special.gammainc(half, middle / 2) < level
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    x = (low + high) / 2
    density = torch.exp((half - 1) * torch.log(x / 2) - x / 2 - torch.lgamma(half)) / 2
    quantile: Tensor = x - (torch.special.gammainc(half, x / 2) - level) / density
    return quantile


@lru_cache(64)
def _quantiles(level: float, most: int) -> Tensor:
    """(most,) for 1, 2, ... degrees; not to be written to."""
    return chi_square_quantile(level, torch.arange(1, max(most, 1) + 1))


@dataclass(frozen=True, eq=False)
class Region:
    """The solution per row. logits (R, n), zero at padding; kappa (R,) multiplier; objective (R,) sum of cross-entropies; start (R,): the step s
    along the answers' signs that reaches the ellipsoid; bound (R, n): where the one-sided bound holds the logit back; least (R,): that bound,
    1e-4 unless the ellipsoid is narrower; bisected (R,): solved by the slow way."""

    logits: Tensor
    kappa: Tensor
    objective: Tensor
    start: Tensor
    bound: Tensor
    least: Tensor
    bisected: Tensor


@dataclass(frozen=True, eq=False)
class _Problem:
    """In sign coordinates: m (R, n), precision (R, n, n), q (R,), low (R, n): 0 at padding, which stays at its bound; valid (R, n)."""

    m: Tensor
    precision: Tensor
    q: Tensor
    low: Tensor
    valid: Tensor

    def rows(self, which: Tensor) -> _Problem:
        return _Problem(self.m[which], self.precision[which], self.q[which], self.low[which], self.valid[which])

    def slope(self, x: Tensor) -> Tensor:
        return torch.where(self.valid, -torch.sigmoid(-(self.m + x)), 0.0)

    def bend(self, x: Tensor) -> Tensor:
        p = torch.sigmoid(self.m + x)
        return torch.where(self.valid, p * (1 - p), 1.0)

    def value(self, x: Tensor) -> Tensor:
        return torch.where(self.valid, F.softplus(-(self.m + x)), 0.0).sum(1)

    def times(self, x: Tensor) -> Tensor:
        return (self.precision @ x[..., None])[..., 0]


def region(mean: Tensor, covariance: Tensor, values: Tensor, valid: Tensor, level: float = LEVEL) -> Region:
    """The logits that stand for answers `values` (R, n) in {0, 1} under N(mean (R, n), covariance (R, n, n)); padding where not valid (R, n),
    with the identity in the covariance.

    Errors: ValueError for the level; NotPositiveDefinite for the covariance."""
    mean, covariance = mean.double(), covariance.double()
    sign = torch.where(valid, 2 * values.double() - 1, 1.0)
    lower = factorised(covariance).lower
    precision = torch.cholesky_inverse(lower) * sign[:, :, None] * sign[:, None, :]
    count = valid.sum(1)
    q = _quantiles(level, valid.shape[1]).to(mean)[count.clamp_min(1) - 1]
    ones = valid.double()
    reach = (q / (ones * (precision @ ones[..., None])[..., 0]).sum(1).clamp_min(1e-300)).sqrt()
    least = torch.minimum(torch.full_like(reach, LEAST), reach / 2)
    problem = _Problem(torch.where(valid, sign * mean, 0.0), precision, q, ones * least[:, None], valid)
    start = ones * reach[:, None]
    x, kappa, good = _newton(problem, start)
    if not bool(good.all()):
        rows = (~good).nonzero()[:, 0]
        x[rows], kappa[rows], good[rows] = _newton(problem.rows(rows), start[rows], careful=True)
    bisected = ~good & (count > 0)
    if bool(bisected.any()):
        rows = bisected.nonzero()[:, 0]
        x[rows], kappa[rows] = _bisected(problem.rows(rows))
    none = count == 0
    kappa[none], reach[none] = 0.0, 0.0
    bound = valid & (x <= problem.low)
    return Region(
        torch.where(valid, mean + sign * x, 0.0), kappa, problem.value(x), reach, bound, least, bisected
    )  # fmt: skip


def _newton(problem: _Problem, x: Tensor, careful: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """x (R, n), kappa (R,), solved (R,), from a start x on the ellipsoid with every x above its bound. Solved rows leave the batch.

    The quick way lets any number of bounds become active or free at each step, and may go round in circles where many hold. The careful one stops
    a step at the first bound that it meets, and frees one at a time, the one that presses most against its bound, once the others are at rest."""
    total = len(x)
    out, kappas = x.clone(), torch.ones_like(problem.q)
    solved = torch.zeros_like(kappas, dtype=torch.bool)
    rows = torch.arange(total, device=x.device)
    kappa = (-(problem.slope(x) * x).sum(1) / problem.q).clamp_min(1e-12)
    active = ~problem.valid
    for _ in range(CAREFUL if careful else NEWTON):
        slope, pressed = problem.slope(x), problem.times(x)
        residual = slope + kappa[:, None] * pressed
        gap = ((x * pressed).sum(1) - problem.q) / 2
        scale = 1 + kappa[:, None]
        rest = (torch.where(active, 0.0, residual.abs() / scale).amax(1) < TOLERANCE) & (
            gap.abs() < TOLERANCE * problem.q
        )
        push = torch.where(active & problem.valid, residual / scale, 0.0)  # negative: it would rather leave its bound
        if careful:
            worst, place = push.min(1)
            freed = rest & (worst < -TOLERANCE)
            active = active & ~(freed[:, None] & (torch.arange(x.shape[1], device=x.device) == place[:, None]))
            done = rest & ~freed
        else:
            active = ~problem.valid | (x < problem.low) | (active & (residual > 0) & (x <= problem.low))
            wrong = torch.where(active, (x - problem.low).abs(), residual.abs() / scale)
            done = (wrong.amax(1) < TOLERANCE) & (gap.abs() < TOLERANCE * problem.q)
        if bool(done.any()):
            out[rows[done]], kappas[rows[done]], solved[rows[done]] = x[done], kappa[done], True
            keep = ~done
            if not bool(keep.any()):
                break
            problem, rows, x, kappa, active = problem.rows(keep), rows[keep], x[keep], kappa[keep], active[keep]
            pressed, residual, gap = pressed[keep], residual[keep], gap[keep]
        moved, step = _step(problem, x, kappa, active, residual, pressed, gap)
        share = torch.where(step < 0, (0.8 * kappa / -step).clamp_max(1.0), 1.0)  # kappa stays positive
        if careful:
            room = torch.where(~active & (moved < 0), (problem.low - x) / moved, torch.inf).amin(1)
            met = room <= share
            share = torch.minimum(share, room)
            hit = met[:, None] & ~active & (moved < 0) & (x + share[:, None] * moved <= problem.low + 1e-15)
            active = active | hit
            x = torch.where(active, problem.low, x + share[:, None] * moved)
        else:
            x = x + share[:, None] * moved
        kappa = kappa + share * step
    return out, kappas, solved & torch.isfinite(out).all(1)


def _step(
    problem: _Problem, x: Tensor, kappa: Tensor, active: Tensor, residual: Tensor, pressed: Tensor, gap: Tensor
) -> tuple[Tensor, Tensor]:
    """Newton's step of x (R, n) and kappa (R,) with the active ones going to their bound; nothing where it has no solution."""
    free = ~active
    fixed = torch.where(active, problem.low - x, 0.0)
    matrix = torch.where(free[:, :, None] & free[:, None, :], kappa[:, None, None] * problem.precision, 0.0)
    matrix.diagonal(dim1=1, dim2=2).add_(torch.where(free, problem.bend(x), 1.0))
    side = torch.where(free, -residual - kappa[:, None] * problem.times(fixed), 0.0)
    along = torch.where(free, pressed, 0.0)
    lower, info = torch.linalg.cholesky_ex(matrix)
    a, b = torch.cholesky_solve(torch.stack([side, along], 2), lower).unbind(2)
    bent = (along * b).sum(1).clamp_min(1e-300)
    step = ((along * a).sum(1) + gap + (pressed * fixed).sum(1)) / bent
    moved = a - step[:, None] * b + fixed
    good = (info == 0) & torch.isfinite(moved).all(1) & torch.isfinite(step)
    return torch.where(good[:, None], moved, 0.0), torch.where(good, step, 0.0)


def _bisected(problem: _Problem) -> tuple[Tensor, Tensor]:
    """x (R, n) and kappa (R,): the ellipsoid's value falls in kappa, so kappa is bracketed and halved in its logarithm."""
    low = torch.full_like(problem.q, -40.0)
    high = torch.zeros_like(problem.q)
    x = problem.low.clone()
    for _ in range(20):
        x = _smallest(problem, high.exp(), x)
        outside = (x * problem.times(x)).sum(1) > problem.q
        if not bool(outside.any()):
            break
        high = torch.where(outside, high + 4.0, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        x = _smallest(problem, middle.exp(), x)
        outside = (x * problem.times(x)).sum(1) > problem.q
        low, high = torch.where(outside, middle, low), torch.where(outside, high, middle)
    return _smallest(problem, high.exp(), x), high.exp()


def _smallest(problem: _Problem, kappa: Tensor, x: Tensor) -> Tensor:
    """The minimum of sum softplus(-(m + x)) + kappa/2 x^T P' x over x >= low: strictly convex; projected Newton with step halving."""
    stuck = torch.zeros_like(kappa, dtype=torch.bool)  # rows whose value cannot fall any more in double precision
    for _ in range(INNER):
        gradient = problem.slope(x) + kappa[:, None] * problem.times(x)
        active = ~problem.valid | ((x <= problem.low) & (gradient > 0))
        size = torch.where(active, 0.0, gradient.abs()).amax(1)
        if bool(((size < 1e-12 * (1 + kappa)) | stuck).all()):
            break
        free = ~active
        matrix = torch.where(free[:, :, None] & free[:, None, :], kappa[:, None, None] * problem.precision, 0.0)
        matrix.diagonal(dim1=1, dim2=2).add_(torch.where(free, problem.bend(x), 1.0))
        direction = -torch.cholesky_solve(torch.where(free, gradient, 0.0)[..., None], factorised(matrix).lower)[..., 0]
        value = problem.value(x) + kappa / 2 * (x * problem.times(x)).sum(1)
        step, best = torch.ones_like(kappa), x
        waiting = torch.ones_like(kappa, dtype=torch.bool)
        for _ in range(30):
            tried = torch.maximum(problem.low, x + step[:, None] * direction)
            now = problem.value(tried) + kappa / 2 * (tried * problem.times(tried)).sum(1)
            better = waiting & (now <= value + 1e-4 * (gradient * (tried - x)).sum(1))
            best = torch.where(better[:, None], tried, best)
            waiting = waiting & ~better
            if not bool(waiting.any()):
                break
            step = step / 2
        stuck = waiting | ((best - x).abs().amax(1) <= 1e-13 * (1 + x.abs().amax(1)))
        x = best
    return x
