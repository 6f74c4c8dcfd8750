"""The benchmark of words: a short run is complete, counts what it should, and finds what was planted."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from fanlight.bench import words


def test_a_short_run_counts_and_finds_what_was_planted() -> None:
    found = words.run(["--repeats", "4", "--scenes", "2", "--nodes", "32"])
    measured = {name for name in words.FIGURES if not name.startswith(("model", "attention"))}
    assert measured <= set(found), "without a folder everything but the model's figures is measured"
    assert found["pair"].value == 4 and found["again"].value == 0
    assert found["all_context"].value == 37 and 30 < found["all_alone"].value <= 37
    assert found["variance"].value > 10 and found["fewer"].value > 3
    for role in words.PLANTED:
        assert found[role].value > 0.9, role
    assert "none" in found["exact_colour_auc"].remark


def test_every_target_of_the_issue_is_declared() -> None:
    goals = {name: (f.at_most, f.at_least) for name, f in words.FIGURES.items()}
    assert goals["pair"] == (4, None) and goals["all_context"] == goals["all_alone"] == (37, None)
    assert goals["variance"] == (None, 10) and goals["fewer"] == (None, 3) and goals["again"] == (0, None)


def test_a_folder_is_measured_beside_its_attention(tmp_path: Path) -> None:
    pytest.importorskip("diffusers", reason="diffusers is not installed (pip install 'fanlight[diffusion]')")
    from fanlight_models.diffusion import small
    from fanlight_models.recipes import scenes_diffusion

    made = scenes_diffusion.Training.new("plain", 0)
    small.write(tmp_path / "model", made.net, made.text, made.tokens, scenes_diffusion.LAW)
    found: words.Found = defaultdict(list)
    words._places(found, 16, 1, tmp_path / "model")
    wanted = {n for n in words.FIGURES if n.startswith(("exact", "model", "attention"))}
    assert wanted == set(found) & wanted
    assert found["exact_half"][0] > 0.9 and found["exact_unique"][0] > 0.8 and found["exact_inside"][0] > 0.5
    for name in wanted:  # random weights: nothing is found, but shares are shares
        assert np.isfinite(found[name]).all() and (name.endswith(("like", "off")) or min(found[name]) >= 0), name
    assert all(found[f"{side}_inside"][0] <= 1 for side in ("exact", "model", "attention"))
