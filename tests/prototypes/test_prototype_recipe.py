"""The recipe of the field guide's prototypes, on a toy of it: from nothing to a bundle that the server can load."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fanlight.adapters import bundle as bundles
from fanlight_models.prototypes import bundle, vit
from fanlight_models.recipes import field_guide_prototypes as recipe


@pytest.mark.slow
def test_the_recipe_ends_with_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "SHAPE", vit.Shape("deit", size=112, patch=14, width=16, depth=1, heads=2))
    monkeypatch.setattr(recipe, "EPOCHS", {"backbone": 1, "warm": 1, "joint": 1, "slots": 1, "last": 1})
    monkeypatch.setattr(recipe, "BATCH", 32)
    threads = torch.get_num_threads()
    recipe.main(
        ["--out", str(tmp_path), "--scenes", "96", "--measured", "20", "--checkpoint", str(tmp_path / "c.part")]
    )
    torch.set_num_threads(threads)
    model = bundles.load(tmp_path / recipe.NAME)
    held = bundle.read(tmp_path / recipe.NAME)
    assert model.task == "prototype-classifier" and len(held.sources) == 120
    there = [j for j, s in enumerate(held.sources) if s.image is not None]
    assert all(held.picture(held.sources[j].image) is not None for j in there)
    assert 0 <= held.quality["consistency"] <= 1 and held.quality["tested_on"] == 20
    assert held.quality["additivity"] < 1e-5 and 0 < held.quality["inside_sensitivity"] < 1
    assert "test split" in model.card and "nan" not in model.card.split("## How good")[1]
