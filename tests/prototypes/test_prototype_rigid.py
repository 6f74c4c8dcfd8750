"""Prototypes of a rigid square, and the recipe that takes one thing away at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from fanlight_models.prototypes import losses, vit
from fanlight_models.prototypes.rigid import RigidHead
from fanlight_models.recipes import field_guide_ablations as recipe, field_guide_prototypes as shipped


def made(grid: tuple[int, int] = (4, 5)) -> RigidHead:
    torch.manual_seed(0)
    return RigidHead(8, 3, grid, per_class=2, parts=4, radius=1)


def test_the_square_is_the_best_of_all_by_a_loop() -> None:
    head, z = made(), torch.randn(6, 20, 8)
    found = head(z)
    unit, parts = F.normalize(z, dim=-1), head.parts()
    for b in range(6):
        for j in range(6):
            sums = {}
            for r in range(3):
                for c in range(4):
                    at = [r * 5 + c, r * 5 + c + 1, (r + 1) * 5 + c, (r + 1) * 5 + c + 1]
                    sums[tuple(at)] = float((unit[b, at] * parts[j].detach()).sum())
            best = max(sums, key=sums.__getitem__)
            assert tuple(found.token[b, j].tolist()) == best
            assert float(found.activation[b, j].detach()) == pytest.approx(sums[best], abs=1e-5)


def test_no_square_holds_a_token_that_may_not_be_used() -> None:
    head, z = made(), torch.randn(2, 20, 8)
    free = torch.ones(2, 20, dtype=torch.bool)
    free[0, :10] = False
    assert int(head(z, free=free).token[0].min()) >= 10 and int(head(z, free=free).token[1].min()) < 10


def test_gradients_reach_tokens_and_prototypes() -> None:
    head, z = made(), torch.randn(2, 20, 8, requires_grad=True)
    head(z).logits.square().sum().backward()
    assert z.grad is not None and head.prototype_vectors.grad is not None
    assert float(z.grad.abs().sum()) > 0 < float(head.prototype_vectors.grad.abs().sum())


def test_parts_that_make_no_square_are_refused() -> None:
    with pytest.raises(ValueError, match="no square"):
        RigidHead(8, 3, (4, 4), parts=3)


def test_without_coherence_it_is_told_and_not_counted() -> None:
    head, z, classes = made(), torch.randn(4, 20, 8), torch.tensor([0, 1, 2, 0])
    found = head(z)
    given = (found.logits, found.similarity, head.parts(), head.gate, head.own, classes)
    with_, without = losses.joint(*given), losses.joint(*given, coherent=False)
    assert float(with_["coherence"].detach()) == float(without["coherence"].detach()) > 0
    assert float((with_["total"] - without["total"]).detach()) == pytest.approx(
        3e-3 * float(with_["coherence"].detach()), rel=1e-3
    )


@pytest.mark.slow
def test_the_recipe_goes_on_where_it_was_and_tells_every_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shipped, "SHAPE", vit.Shape("deit", size=112, patch=14, width=16, depth=1, heads=2))
    monkeypatch.setattr(recipe, "EPOCHS", {"backbone": 1, "warm": 1, "joint": 1, "slots": 1, "last": 1})
    monkeypatch.setattr(shipped, "BATCH", 32)
    threads = torch.get_num_threads()
    asked = ["--folder", str(tmp_path), "--scenes", "64", "--measured", "20"]
    recipe.main([*asked, "--variants", "rigid", "no projection"])
    before = (tmp_path / "results.jsonl").read_text().splitlines()
    capsys.readouterr()
    recipe.main([*asked, "--json"])
    torch.set_num_threads(threads)
    rows = json.loads(capsys.readouterr().out)
    assert (tmp_path / "results.jsonl").read_text().splitlines()[: len(before)] == before
    assert [r["variant"] for r in rows][:3] == ["linear head", "rigid", "no projection"]
    assert {r["variant"] for r in rows} == {recipe.LINEAR, *recipe.VARIANTS}
    by = {r["variant"]: r for r in rows}
    assert by["no slots"]["parts"] == 4.0
    assert all(0 <= by[v]["consistency"] <= 1 for v in recipe.VARIANTS)
    with pytest.raises(ValueError, match="other options"):
        recipe.main([*asked[:2], "--scenes", "96", "--measured", "20"])
