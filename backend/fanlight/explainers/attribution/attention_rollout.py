"""Attention rollout: the attention of all layers multiplied through, from the answer's token to the patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class AttentionRollout(base.Explainer):
    """Abnar & Zuidema, Quantifying Attention Flow in Transformers (ACL 2020), section 4: the product over layers of
    (A + I) / 2, A the mean attention of the heads."""

    name = "attention-rollout"
    title = "Attention rollout"
    family = "attribution"
    summary = "How much of each patch could have reached the answer, by attention alone; the same for every class."
    reading = (
        "Bright patches are those whose content the attention of the layers carries to the answer, if attention and "
        "skipping a layer count half each. Values are shares: over all tokens they add up to 1. "
        "The class plays no part."
    )
    misleads = (
        "It says where the model could have looked, not what it made of it, and is the same for every class. "
        "What is done with the values in between is left out, and negative evidence looks like positive. "
        "Patches without content are often bright, where models keep notes of their own."
    )
    paper = base.Paper(
        "Abnar & Zuidema: Quantifying Attention Flow in Transformers. ACL 2020",
        "https://arxiv.org/abs/2005.00928",
        "@inproceedings{abnar2020quantifying, title={Quantifying Attention Flow in Transformers}, author={Abnar, Samira "
        "and Zuidema, Willem}, booktitle={ACL}, year={2020}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"attention"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        heads: Literal["mean", "max", "min"] = Field(
            "mean", description="How the heads of a layer become one: their mean (as published), largest or smallest."
        )
        residual: float = Field(
            0.5, ge=0, le=0.95, description="Share of each layer that goes around its attention (as published: a half)."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one pass, whatever the size)
        return 1

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        import torch

        found = []
        for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
            batch = items[start:stop]
            with torch.inference_mode():
                x = evaluate.padded(torch.stack([i.x for i in batch]), rows)
                logits, layers, prefix, grid = model.attentions(x)
                flow: Tensor | None = None
                for layer in layers:
                    one = fused(layer, params)
                    flow = one if flow is None else one @ flow
                assert flow is not None
                value = maps.of_tokens(maps.read_out(flow, prefix), prefix, grid, model.size)  # (B, H, W)
                # the map does not hang on the answer, but of a model that has none there is nothing to explain
                value = torch.where(logits.isfinite().all(1)[:, None, None], value, torch.nan)
            found += [
                [maps.image_map(i, v, unit="share per patch", signed=False, grid=list(grid), layers=len(layers))]
                for i, v in zip(batch, value, strict=False)
            ]
            yield base.Step(stop / len(items))
        return found


def fused(layer: Tensor, params: AttentionRollout.Params) -> Tensor:
    """(B, heads, N, N) -> (B, N, N): the heads as one, with what goes around them; rows sum to 1."""
    import torch

    one = layer.mean(1) if params.heads == "mean" else layer.amax(1) if params.heads == "max" else layer.amin(1)
    one = one / one.sum(-1, keepdim=True).clamp(min=1e-12)
    return (1 - params.residual) * one + params.residual * torch.eye(one.shape[-1], device=one.device, dtype=one.dtype)
