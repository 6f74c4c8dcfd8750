"""Grad-CAM: which places of the last grid of features speak for the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, cams

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class GradCAM(base.Explainer):
    """Selvaraju et al., Grad-CAM (ICCV 2017), equations 1 and 2: alpha_k = mean_ij dS/dA_kij, L = ReLU(sum_k alpha_k
    A_k)."""

    name = "grad-cam"
    title = "Grad-CAM"
    family = "attribution"
    summary = "Which places of the model's last feature grid speak for the answer."
    reading = (
        "Bright areas hold features that raise the explained value. "
        "It is coarse, one value per cell of the last feature grid (7 by 7 for a 224 px model), "
        "smoothed when it is enlarged to the picture."
    )
    misleads = (
        "The smooth enlargement looks more precise than the grid is; a cell sees far beyond its own square. "
        "Evidence against the class is cut off unless you ask for both signs, "
        "and where every cell speaks against the class the map is empty."
    )
    paper = base.Paper(
        "Selvaraju, Cogswell, Das, Vedantam, Parikh & Batra: Grad-CAM. ICCV 2017",
        "https://arxiv.org/abs/1610.02391",
        "@inproceedings{selvaraju2017gradcam, title={Grad-CAM: Visual Explanations from Deep Networks via "
        "Gradient-based "
        "Localization}, author={Selvaraju, Ramprasaath R. and Cogswell, Michael and Das, Abhishek and Vedantam, "
        "Ramakrishna and Parikh, Devi and Batra, Dhruv}, booktitle={ICCV}, year={2017}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "spatial-features"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        evidence: Literal["for", "both"] = Field(
            "for", description="Show only evidence for the target (as published), or also evidence against it."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one pass, whatever the size)
        return 2

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        def weigh(grid: Tensor, grads: Tensor) -> Tensor:
            cam = (grads.mean((2, 3), keepdim=True) * grid).sum(1, keepdim=True)  # (B, 1, h, w)
            return cam.relu() if params.evidence == "for" else cam

        signed = params.evidence == "both"
        return (yield from cams.run(model, items, ctx, weigh, unit=f"{model.measure} per cell", signed=signed))
