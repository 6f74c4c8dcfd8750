"""The benchmark of prototypes: its two sides compute the same, and its model is a model."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F

from fanlight.adapters import bundle as bundles
from fanlight.bench import _large, _matcher, prototypes
from fanlight_models.prototypes import matching


def test_both_sides_of_the_matcher_give_the_same_values_and_gradients() -> None:
    torch.manual_seed(0)
    near = matching.neighbours((5, 6), 1)
    z, parts = torch.randn(3, 30, 16, requires_grad=True), torch.randn(7, 4, 16, requires_grad=True)
    found = []
    for side in (_matcher.ours, _matcher.naive):
        out = side(F.normalize(z, dim=-1), F.normalize(parts, dim=-1), near)
        found.append((out, *torch.autograd.grad((out * torch.arange(7.0)).sum(), (z, parts))))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-5)


def test_a_step_in_a_process_of_its_own_says_what_it_took() -> None:
    got = _matcher.measured("ours", 4, 40, 1)
    assert got["seconds"] > 0 and got["mb"] >= 0


def test_the_large_model_is_a_bundle(tmp_path: Path) -> None:
    model = bundles.load(_large.write(tmp_path / "large", classes=4, per_class=3))
    assert model.task == "prototype-classifier" and len(model.own) == 12


def test_every_figure_is_declared_with_what_it_measures() -> None:
    assert all(f.measures for f in prototypes.FIGURES.values())
    assert prototypes.FIGURES["memory_ratio"].at_least == 4 and prototypes.FIGURES["edit_p95"].at_most == 30
