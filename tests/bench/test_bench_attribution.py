"""The games in which evaluations are counted have known answers; costs and peaks measure what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fanlight.bench import _evaluations as evaluations, _table, attribution
from fanlight.explainers.attribution.shapley import everything


def test_a_game_answers_with_the_worth_of_the_squares_that_are_shown():
    worth = np.random.default_rng(0).normal(size=4096)
    game = evaluations.game(worth)
    x = torch.zeros(3, 3, 48, 64)
    x[1, :, :16, 16:32] = 1  # player 1
    x[2, :, 32:, 48:] = 1  # player 11
    assert game.model.net(x)[:, 0].tolist() == pytest.approx([worth[0], worth[2], worth[2048]])


def test_an_additive_game_is_solved_exactly_and_the_passes_are_counted():
    value = np.arange(12.0) - 3
    game = evaluations.game(everything(12) @ value)
    np.testing.assert_allclose(game.truth, value, atol=1e-9)
    phi, asked = evaluations.ours(game, 128, seed=1)
    np.testing.assert_allclose(phi, value, atol=1e-4)
    assert 100 <= asked <= 128


def test_more_evaluations_have_a_smaller_error():
    game = evaluations.game(evaluations.of_interactions())
    asked, errors = evaluations.curve(evaluations.ours, game, (64, 256, 1024, 4096), range(6))
    assert list(errors) == sorted(errors, reverse=True) and errors[0] > 0.02
    assert errors[-1] < 1e-5 and asked[-1] == 4096, "all coalitions: exact"


def test_evaluations_needed_for_an_error_are_read_off_the_curve():
    asked, errors = np.array([100.0, 400.0, 1600.0]), np.array([0.4, 0.2, 0.1])  # as one over the root
    assert evaluations.needed(asked, errors, 0.2) == pytest.approx(400)
    assert evaluations.needed(asked, errors, 0.4 / 3) == pytest.approx(900)
    assert evaluations.needed(asked, errors, 0.01) == 1600


def test_every_job_has_a_limit_and_the_document_a_place(root):
    assert all(attribution.FIGURES[f"{job}_ours"].at_most for job in attribution.TOLD)
    assert attribution.FIGURES["memory_ig50_ours"].at_most == 160
    text = (root / "docs" / "measurements.md").read_text()
    assert _table.replaced(text, "attribution", "rows") != text
    for declared in attribution.FIGURES.values():
        assert f"| {declared.measures} | {declared.target} |" in text


def test_sides_of_the_jobs_are_those_that_are_declared():
    pytest.importorskip("timm")
    from fanlight.bench import _jobs

    assert {job: sides[1:] for job, sides in _jobs.SIDES.items()} == attribution.SIDES
    assert set(_jobs.OURS) == set(attribution.TOLD)
