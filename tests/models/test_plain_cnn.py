"""The plain network: folding changes nothing, and the shipped recipe's pieces do what they say."""

from __future__ import annotations

import argparse

import pytest
import torch

from fanlight_models.plain_cnn import PlainCNN, folded
from fanlight_models.recipes import field_guide


def test_without_its_normalisation_it_computes_the_same() -> None:
    torch.manual_seed(0)
    trained = PlainCNN((4, 8), 2, 5, norm=True)
    for _ in range(3):  # statistics of its own
        trained(torch.randn(16, 3, 32, 32) * 2 + 1)
    trained.eval()
    x = torch.randn(3, 3, 32, 32)
    with torch.inference_mode():
        torch.testing.assert_close(folded(trained, (4, 8), 2, 5)(x), trained(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", [{"widths": ()}, {"widths": (0,)}, {"depth": 0}, {"classes": 1}])
def test_a_network_of_nothing_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="at least"):
        PlainCNN(**config)  # type: ignore[arg-type]


@pytest.mark.slow
def test_training_goes_on_from_its_checkpoint_to_the_same_weights(tmp_path: object) -> None:
    images = torch.randint(0, 255, (128, 32, 32, 3), dtype=torch.uint8)
    species = torch.randint(0, 24, (128,))

    def options(name: str) -> argparse.Namespace:
        return argparse.Namespace(seed=0, epochs=3, checkpoint=tmp_path / name)  # type: ignore[operator]

    whole = field_guide.fit(images, species, options("a")).state_dict()

    field_guide.fit(images, species, options("b"), stop=2)
    again = field_guide.fit(images, species, options("b")).state_dict()
    for name, value in whole.items():
        torch.testing.assert_close(again[name], value, rtol=1e-3, atol=1e-5, msg=name)
