"""The edge detector: a floor that knows the picture and nothing of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fanlight.explainers import base, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

LUMINANCE = (0.2126, 0.7152, 0.0722)  # ITU-R BT.709


class Edges(base.Explainer):
    """Adebayo et al., Sanity Checks for Saliency Maps (NeurIPS 2018), section 5: a Sobel edge detector beside
    saliency maps."""

    name = "edges"
    title = "Edges (floor)"
    family = "floor"
    summary = "Edges of the picture, found without asking the model: looking plausible proves nothing."
    reading = (
        "Bright where the brightness of the picture changes sharply. The model was not asked and the class plays no "
        "part. "
        "A map that looks like this one may show the picture rather than the model."
    )
    misleads = (
        "It often looks like an explanation, because objects have outlines. "
        "Its faithfulness can be above chance for the same reason: edges and objects coincide."
    )
    paper = base.Paper(
        "Adebayo, Gilmer, Muelly, Goodfellow, Hardt & Kim: Sanity Checks for Saliency Maps. NeurIPS 2018",
        "https://arxiv.org/abs/1810.03292",
        "@inproceedings{adebayo2018sanity, title={Sanity Checks for Saliency Maps}, author={Adebayo, Julius and "
        "Gilmer, Justin "
        "and Muelly, Michael and Goodfellow, Ian and Hardt, Moritz and Kim, Been}, booktitle={NeurIPS}, year={2018}}",
    )
    accepts = "image-classifier"
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        smoothing: float = Field(
            1.0,
            ge=0,
            le=10,
            description="Standard deviation of the blur before edges are sought, in pixels of the input; 0: none.",
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the model is not asked)
        return 0

    def run(
        self,
        model: ImageClassifier,  # noqa: ARG002
        items: Sequence[base.Item],
        params: Params,
        ctx: base.Context,  # noqa: ARG002 (the model is not asked)
    ) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append(
                [maps.image_map(item, _sobel(item.image, params.smoothing), unit="brightness per pixel", signed=False)]
            )
            yield base.Step((n + 1) / len(items))
        return found


def _sobel(image: np.ndarray[tuple[int, int, int], np.dtype[np.uint8]], smoothing: float) -> Tensor:
    """(H, W, 3) uint8 -> (H, W): length of the gradient of the luminance (0..1) per pixel."""
    import torch
    import torch.nn.functional as F

    grey = torch.from_numpy(image.astype(np.float32) / 255) @ torch.tensor(LUMINANCE)
    if smoothing > 0:
        grey = maps.blurred(grey[None], smoothing)[0]
    across = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 8
    wide = F.pad(grey[None, None], (1, 1, 1, 1), mode="replicate")
    both = F.conv2d(wide, torch.stack([across, across.T])[:, None])  # (1, 2, H, W)
    return both[0].square().sum(0).sqrt()
