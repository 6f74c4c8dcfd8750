"""LayerCAM: each cell of the feature grid weighed by its own slope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, cams

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class LayerCAM(base.Explainer):
    """Jiang, Zhang, Hou, Cheng & Wei, LayerCAM (IEEE TIP 2021), equations 6 to 8: L_ij = ReLU(sum_k ReLU(dS/dA_kij) A_kij)."""

    name = "layer-cam"
    title = "LayerCAM"
    family = "attribution"
    summary = "Which places of the model's last feature grid speak for the answer, each weighed by its own slope."
    reading = (
        "Bright areas hold features that raise the explained value at that very place; Grad-CAM weighs a feature alike "
        "everywhere. "
        "It is coarse, one value per cell of the last feature grid, smoothed when it is enlarged to the picture."
    )
    misleads = (
        "The smooth enlargement looks more precise than the grid is; a cell sees far beyond its own square. "
        "Evidence against the class is left out unless you ask for both signs. "
        "Behind a mean over all cells every cell has the same slope: with both signs it then equals Grad-CAM."
    )
    paper = base.Paper(
        "Jiang, Zhang, Hou, Cheng & Wei: LayerCAM: Exploring Hierarchical Class Activation Maps for Localization. IEEE "
        "Transactions on Image Processing 2021",
        "https://doi.org/10.1109/TIP.2021.3089943",
        "@article{jiang2021layercam, title={LayerCAM: Exploring Hierarchical Class Activation Maps for Localization}, "
        "author={Jiang, Peng-Tao and Zhang, Chang-Bin and Hou, Qibin and Cheng, Ming-Ming and Wei, Yunchao}, "
        "journal={IEEE Transactions on Image Processing}, volume={30}, year={2021}}",
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
            if params.evidence == "both":
                return (grads * grid).sum(1, keepdim=True)
            return (grads.relu() * grid).sum(1, keepdim=True).relu()

        signed = params.evidence == "both"
        return (yield from cams.run(model, items, ctx, weigh, unit=f"{model.measure} per cell", signed=signed))
