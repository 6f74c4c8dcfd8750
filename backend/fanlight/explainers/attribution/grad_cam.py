"""Grad-CAM: which places of the last grid of features speak for the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
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
        import torch
        import torch.nn.functional as F

        found = []
        for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
            batch = items[start:stop]
            with torch.enable_grad():
                # the weights are frozen: without a gradient at the input nothing would reach the features
                x = evaluate.padded(torch.stack([i.x for i in batch]), rows).requires_grad_()
                logits, grid = model.features(x)  # (B, K), (B, D, h, w)
                value = torch.cat([i.target.value(logits[n : n + 1]) for n, i in enumerate(batch)])
                (grads,) = torch.autograd.grad(value.sum(), grid)
            cam = (grads.mean((2, 3), keepdim=True) * grid.detach()).sum(1, keepdim=True)  # (B, 1, h, w)
            cam = cam.relu() if params.evidence == "for" else cam
            large = F.interpolate(cam, model.size, mode="bilinear", align_corners=False)[:, 0]
            found += [
                [
                    maps.image_map(
                        i, v, unit="logit per cell", signed=params.evidence == "both", grid=list(cam.shape[2:])
                    )
                ]
                for i, v in zip(batch, large, strict=False)
            ]
            yield base.Step(stop / len(items))
        return found
