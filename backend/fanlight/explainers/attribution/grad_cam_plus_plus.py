"""Grad-CAM++: Grad-CAM with weights that count each place of a feature once, however much of the picture it covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fanlight.explainers import base, cams

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class GradCAMPlusPlus(base.Explainer):
    """Chattopadhay, Sarkar, Howlader & Balasubramanian, Grad-CAM++ (WACV 2018), equations 5 and 19:
    w_k = sum_ij alpha_kij ReLU(g_kij), alpha = g^2 / (2 g^2 + g^3 sum_ab A_kab), L = ReLU(sum_k w_k A_k)."""

    name = "grad-cam-plus-plus"
    title = "Grad-CAM++"
    family = "attribution"
    summary = "Which places of the model's last feature grid speak for the answer, small and repeated objects included."
    reading = (
        "Bright areas hold features that raise the explained value. Unlike Grad-CAM, a feature that reacts in few places "
        "weighs as much as one that reacts in many. "
        "It is coarse, one value per cell of the last feature grid, smoothed when it is enlarged to the picture."
    )
    misleads = (
        "Only features that speak for the target are used, so another class often gives much the same map: "
        "compare with one. The values are of no unit and do not add up to anything. "
        "The smooth enlargement looks more precise than the grid is."
    )
    paper = base.Paper(
        "Chattopadhay, Sarkar, Howlader & Balasubramanian: Grad-CAM++: Generalized Gradient-based Visual Explanations for "
        "Deep Convolutional Networks. WACV 2018",
        "https://arxiv.org/abs/1710.11063",
        "@inproceedings{chattopadhay2018gradcampp, title={Grad-CAM++: Generalized Gradient-based Visual Explanations for "
        "Deep Convolutional Networks}, author={Chattopadhay, Aditya and Sarkar, Anirban and Howlader, Prantik and "
        "Balasubramanian, Vineeth N.}, booktitle={WACV}, year={2018}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "spatial-features"})
    returns = ("image-map",)
    version = "1"

    @classmethod
    def cost(cls, params: base.Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one pass, whatever the size)
        return 2

    class Params(base.Params):
        pass

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:  # noqa: ARG002
        return (yield from cams.run(model, items, ctx, _weigh, unit="relative", signed=False))


def _weigh(grid: Tensor, grads: Tensor) -> Tensor:
    """(B, D, h, w) each -> (B, 1, h, w)"""
    import torch

    # both sides of alpha divided by g^2: where g is 0, so is alpha's share, whatever it is divided by
    below = 2 + grads * grid.sum((2, 3), keepdim=True)
    alpha = torch.where((grads != 0) & (below != 0), 1 / below, 0)
    weight = (alpha * grads.relu()).sum((2, 3), keepdim=True)
    return (weight * grid).sum(1, keepdim=True).relu()
