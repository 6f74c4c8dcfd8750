"""Our transformers beside timm's, with its weights, under its names."""

from __future__ import annotations

import pytest
import torch

from fanlight_models.prototypes import vit


@pytest.mark.parametrize("name", list(vit.PUBLISHED))
def test_weights_of_timm_load_by_name_and_give_its_tokens(name: str) -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    torch.manual_seed(0)
    theirs = timm.create_model(name, pretrained=False).eval()
    with torch.no_grad():  # layer scale starts at 1e-5, at which blocks would not be seen
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.05 + (parameter.ndim == 1) * 0.1)
    ours = vit.build(vit.PUBLISHED[name]).eval()
    weights = {k: v for k, v in theirs.state_dict().items() if not k.startswith("head")}
    assert ours.load_state_dict(weights, strict=True)
    x = torch.randn(2, 3, 224, 224)
    with torch.inference_mode():
        whole, patches = ours(x)
        expected = theirs.forward_features(x)
        torch.testing.assert_close(whole, expected[:, 0], atol=2e-4, rtol=1e-3)
        torch.testing.assert_close(patches, expected[:, 1:], atol=2e-4, rtol=1e-3)
        torch.testing.assert_close(ours.tokens(x), patches - whole[:, None])


@pytest.mark.parametrize(("size", "patch", "grid"), [(28, 4, (7, 7)), (32, 4, (8, 8)), (112, 8, (14, 14))])
def test_any_grid(size: int, patch: int, grid: tuple[int, int]) -> None:
    shape = vit.Shape(size=size, patch=patch, width=16, depth=1, heads=2)
    assert shape.grid == grid
    assert vit.build(shape).tokens(torch.zeros(1, 3, size, size)).shape == (1, grid[0] * grid[1], 16)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size": 30, "patch": 4}, "whole patches"),
        ({"width": 10, "heads": 3}, "heads"),
        ({"kind": "swin"}, "allowed are deit"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        vit.build(vit.Shape(**given))  # type: ignore[arg-type]


def test_a_branch_is_left_out_only_while_training_and_made_up_for() -> None:
    drop = vit.DropPath(0.25)
    x = torch.ones(4000, 2, 2)
    assert torch.equal(drop.eval()(x), x)
    torch.manual_seed(0)
    out = drop.train()(x)
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(out.mean()) == pytest.approx(1, abs=0.03)
