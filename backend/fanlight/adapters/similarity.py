"""The model asked another question: how similar is this picture to that one?

A wrapper around an image classifier whose only output is the cosine of the angle between two embeddings, so that
explainers and trust work on it as on a logit and know nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from fanlight.adapters.image_classifier import TorchImageClassifier


class Similarity:
    """An `ImageClassifier` (adapters/base.py) with one output, -1..1. Everything else is the model's own.

    Args:
        model: with the capability `embedding`.
        reference: embedding of the other picture, (D,).
    """

    classes = ("similarity",)
    head = "regression"
    unit = ""
    measure = "cosine similarity"

    def __init__(self, model: TorchImageClassifier, reference: Tensor):
        self._model = model
        self._reference = reference

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def logits(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, 1), differentiable in x."""
        return self._cosine(self._model.embedding(x))

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        seen = self._model.observe(x, grid=True, embedding=True)
        assert seen.grid is not None
        return self._cosine(seen.embedding), seen.grid

    def attentions(self, x: Tensor) -> tuple[Tensor, list[Tensor], int, tuple[int, int]]:
        seen = self._model.observe(x, attention=True, embedding=True)
        prefix, *grid = self._model.tokens
        return self._cosine(seen.embedding), seen.attention, prefix, (grid[0], grid[1])

    def _cosine(self, embedding: Tensor | None) -> Tensor:
        assert embedding is not None
        return F.cosine_similarity(embedding, self._reference[None], dim=1)[:, None]  # (B, 1)


def embed(model: TorchImageClassifier, x: Tensor) -> Tensor:
    """The embedding of one prepared picture, (3, H, W) -> (D,), without a graph."""
    with torch.no_grad():
        return model.embedding(x[None])[0]
