"""Attention x gradient: the attention that raises the answer, followed from the patches through all layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from fanlight.adapters.base import ImageClassifier


class AttentionXGradient(base.Explainer):
    """Chefer, Gur & Wolf, Generic Attention-model Explainability (ICCV 2021), equations 5 and 6 for self-attention:
    R <- R + mean over heads of ReLU(A dS/dA) R, layer by layer from R = I."""

    name = "attention-x-gradient"
    title = "Attention × Gradient"
    family = "attribution"
    summary = "Which patches reach the answer through attention that raises it."
    reading = (
        "Bright patches are attended to where more attention would raise the explained value, through all layers. "
        "Unlike rollout it depends on the class. It is coarse, one value per patch, smoothed when it is enlarged."
    )
    misleads = (
        "Attention that lowers the value is cut off, so nothing speaks against the class. "
        "Values have no unit and do not add up to anything; what is done between two attentions is left out. "
        "In a late layer the class token may already hold all it needs, and early layers then count little."
    )
    paper = base.Paper(
        "Chefer, Gur & Wolf: Generic Attention-model Explainability for Interpreting Bi-Modal and Encoder-Decoder "
        "Transformers. ICCV 2021",
        "https://arxiv.org/abs/2103.15679",
        "@inproceedings{chefer2021generic, title={Generic Attention-model Explainability for Interpreting Bi-Modal and "
        "Encoder-Decoder Transformers}, author={Chefer, Hila and Gur, Shir and Wolf, Lior}, booktitle={ICCV}, year={2021}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "attention"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        layers: Literal["all", "last"] = Field(
            "all", description="Through which layers it is followed: all (as published), or only the last."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one pass, whatever the size)
        return 2

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        import torch

        found = []
        for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
            batch = items[start:stop]
            with torch.enable_grad():
                # the weights are frozen: without a gradient at the input there would be none at the attention
                x = evaluate.padded(torch.stack([i.x for i in batch]), rows).requires_grad_()
                logits, layers, prefix, grid = model.attentions(x)
                value = torch.cat([i.target.value(logits[n : n + 1]) for n, i in enumerate(batch)])
                wanted = layers if params.layers == "all" else layers[-1:]
                slopes = torch.autograd.grad(value.sum(), wanted)
            tokens = wanted[0].shape[-1]
            flow = torch.eye(tokens, device=x.device).expand(len(x), -1, -1)  # what each token is made of, (B, N, N)
            for layer, slope in zip(wanted, slopes, strict=True):
                flow = flow + (layer.detach() * slope).relu().mean(1) @ flow
            share = maps.read_out(flow - torch.eye(tokens, device=x.device), prefix)
            large = maps.of_tokens(share, prefix, grid, model.size)
            found += [
                [maps.image_map(i, v, unit="relative", signed=False, grid=list(grid), layers=len(wanted))]
                for i, v in zip(batch, large, strict=False)
            ]
            yield base.Step(stop / len(items))
        return found
