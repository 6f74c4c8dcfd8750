"""ProtoViT: a vision transformer that answers by what parts of a picture look like."""

from __future__ import annotations

from torch import Tensor, nn

from fanlight_models.prototypes import cells, vit
from fanlight_models.prototypes.head import Found, Head


class ProtoViT(nn.Module):
    """Backbone, tokens less the class token, prototype head.

    Args: backbone: its shape; classes: C; the others as in `head.Head`. Errors: ValueError.
    """

    def __init__(
        self,
        backbone: vit.Shape,
        classes: int,
        *,
        per_class: int = 10,
        parts: int = 4,
        radius: int = 1,
        temperature: float = 100.0,
    ):
        super().__init__()
        self.features: vit.Backbone | cells.Cells | cells.Kept
        self.features = cells.Cells(backbone) if backbone.kind == cells.KIND else vit.build(backbone)
        self.head = Head(
            backbone.width,
            classes,
            backbone.grid,
            per_class=per_class,
            parts=parts,
            radius=radius,
            temperature=temperature,
        )

    def forward(self, x: Tensor, *, free: Tensor | None = None) -> Found:
        """Args: x: (B, 3, H, W) in model space; free: (B, N) bool, tokens that prototypes may match."""
        found: Found = self.head(self.features.tokens(x), free=free)
        return found
