"""The greedy walk: hand-made cases, a naive loop, gradients, memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from torch import Tensor

from fanlight_models.prototypes import matching

GRID = (3, 3)


def table(parts: int, rows: dict[int, tuple[float, ...]], tokens: int = 9) -> Tensor:
    """(K, N) from the rows of some tokens."""
    s = torch.zeros(tokens, parts)
    for token, row in rows.items():
        s[token] = torch.tensor(row)
    return s.T


def walk(s: Tensor, radius: int = 1, grid: tuple[int, int] = GRID) -> tuple[list[int], list[int], float]:
    found = matching.walk(s, matching.neighbours(grid, radius))
    return found.token.tolist(), found.order.tolist(), float(s.gather(1, found.token[:, None]).sum())


def naive(s: np.ndarray, grid: tuple[int, int], radius: int) -> tuple[list[int], list[int]]:
    """The walk as a person would do it. s: (K, N)."""
    parts, tokens = s.shape
    columns = grid[1]
    token, order = [0] * parts, [0] * parts
    free_parts, free_tokens, window = set(range(parts)), set(range(tokens)), set(range(tokens))
    for step in range(parts):
        pairs = sorted((-s[k, n], k, n) for k in free_parts for n in free_tokens & window)
        _, k, n = pairs[0]
        token[k], order[k] = n, step
        free_parts.remove(k)
        free_tokens.remove(n)
        window = {
            q
            for q in range(tokens)
            if abs(q // columns - n // columns) <= radius and abs(q % columns - n % columns) <= radius
        }
    return token, order


def test_two_parts_that_want_the_same_token() -> None:
    s = table(2, {0: (0.90, 0.85), 1: (0.20, 0.30), 3: (0.05, 0.35), 4: (0.15, 0.40), 8: (0.10, 0.80)})
    token, order, total = walk(s)
    assert (token, order) == ([0, 4], [0, 1]) and total == pytest.approx(1.30)
    token, _, total = walk(s, radius=2)
    assert token == [0, 8] and total == pytest.approx(1.70)


def test_the_best_pair_goes_first_whatever_its_part() -> None:
    s = table(
        3,
        {
            0: (0.9, 0.2, 0.1), 1: (0.3, 0.5, 0.2), 2: (0.1, 0.2, 0.95), 3: (0.1, 0.1, 0.4), 4: (0.2, 0.6, 0.3),
            5: (0.2, 0.3, 0.45), 6: (0.1, 0.7, 0.1), 8: (0.4, 0.1, 0.1),
        },
    )  # fmt: skip
    token, order, total = walk(s)
    assert (token, order) == ([0, 4, 2], [2, 1, 0]) and total == pytest.approx(2.45)
    assert walk(s, radius=2)[2] == pytest.approx(2.55)


def test_the_window_follows_the_last_token_alone() -> None:
    s = table(3, {0: (0.9, 0.1, 0.1), 1: (0.1, 0.8, 0.1), 2: (0.1, 0.1, 0.7), 3: (0, 0, 0.6)})
    token, _, total = walk(s)
    assert token == [0, 1, 2] and total == pytest.approx(2.4)


@pytest.mark.parametrize(
    ("parts", "radius", "ok"), [(4, 1, True), (5, 1, False), (5, 2, True), (9, 2, True), (10, 2, False), (1, 0, False)]
)
def test_parts_and_radius_that_could_end_in_a_dead_end_are_refused(parts: int, radius: int, ok: bool) -> None:
    assert matching.valid(parts, radius) is ok
    if ok:
        matching.require(parts, radius, (7, 7))
    else:
        with pytest.raises(ValueError, match=r"dead end.*allowed"):
            matching.require(parts, radius, (7, 7))


def test_a_grid_smaller_than_the_neighbourhood_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        matching.require(4, 1, (1, 9))


def test_ties_go_to_the_lowest_part_and_then_the_lowest_token() -> None:
    token, order, _ = walk(torch.ones(3, 9))
    assert (token, order) == ([0, 1, 2], [0, 1, 2])


@given(
    st.integers(2, 6),
    st.integers(2, 6),
    st.sampled_from([(1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (5, 2)]),
    st.integers(0, 10**6),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_walk_is_the_naive_one(rows: int, columns: int, shape: tuple[int, int], seed: int, coarse: bool) -> None:
    parts, radius = shape
    if min(rows, columns) <= radius or rows * columns < parts:
        return
    s = np.random.default_rng(seed).uniform(-1, 1, (3, parts, rows * columns))
    s = np.round(s, 1) if coarse else s  # many ties
    found = matching.walk(torch.from_numpy(s), matching.neighbours((rows, columns), radius))
    for i in range(3):
        assert (found.token[i].tolist(), found.order[i].tolist()) == naive(s[i], (rows, columns), radius)
    near = matching.neighbours((rows, columns), radius)
    for tokens, order in zip(found.token, found.order, strict=True):
        assert len(set(tokens.tolist())) == parts
        path = tokens[order.argsort()]
        assert all(near[a, b] for a, b in zip(path, path[1:], strict=False))


def test_excluded_tokens_are_never_matched_even_where_the_walk_has_to_jump() -> None:
    s = table(2, {0: (0.9, 0.2), 8: (0.1, 0.7)})
    free = torch.ones(9, dtype=torch.bool)
    free[[1, 3, 4]] = False  # every neighbour of the best token
    found = matching.walk(s, matching.neighbours(GRID, 1), free=free)
    assert found.token.tolist() == [0, 8]
    free[:] = False
    free[0] = True
    with pytest.raises(ValueError, match="too few"):
        matching.walk(s, matching.neighbours(GRID, 1), free=free)


def dense(z: Tensor, parts: Tensor, token: Tensor) -> Tensor:
    every = torch.einsum("bnd,mkd->bmkn", F.normalize(z, dim=-1), F.normalize(parts, dim=-1))
    return every.gather(3, token[..., None])[..., 0]


def test_matched_values_and_gradients_are_those_of_all_similarities() -> None:
    torch.manual_seed(0)
    z, parts = torch.randn(4, 49, 16, requires_grad=True), torch.randn(12, 4, 16, requires_grad=True)
    unit, unit_parts = F.normalize(z, dim=-1), F.normalize(parts, dim=-1)
    where = matching.match(unit, unit_parts, matching.neighbours((7, 7), 1))
    weight = torch.randn(4, 12, 4)
    lean, full = matching.matched(unit, unit_parts, where.token), dense(z, parts, where.token)
    torch.testing.assert_close(lean, full, atol=1e-6, rtol=0)
    ours = torch.autograd.grad((lean * weight).sum(), (z, parts))
    theirs = torch.autograd.grad((full * weight).sum(), (z, parts))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=2e-6, rtol=0)


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    z, parts = F.normalize(torch.randn(3, 64, 8), dim=-1), F.normalize(torch.randn(10, 4, 8), dim=-1)
    near = matching.neighbours((8, 8), 1)
    whole = matching.match(z, parts, near)
    monkeypatch.setattr(matching, "ELEMENTS", 1)
    assert all(torch.equal(a, b) for a, b in zip(whole, matching.match(z, parts, near), strict=True))
    alone = matching.match(z[1:2], parts, near)
    assert torch.equal(alone.token[0], whole.token[1])
