"""Relevance propagation for transformers: input times the gradient of a graph in which what mixes or normalises is simplified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from fanlight.adapters.base import ImageClassifier

TINY = 1e-6


class AttnLRP(base.Explainer):
    """Achtibat, Hatefi, Dreyer, Jain, Wiegand, Lapuschkin & Samek, AttnLRP (ICML 2024), as input times gradient of a modified
    graph; with the constant attention of Ali et al., XAI for Transformers (ICML 2022), as the other choice."""

    name = "attn-lrp"
    title = "AttnLRP"
    family = "attribution"
    summary = "The answer of a transformer handed back layer by layer to the pixels, through its attention."
    reading = (
        "Positive pixels carry evidence for the explained value, negative ones against it, attention included. "
        "Each layer shares out what it gets; the conservation printed with the map says how much of the answer arrived. "
        "Read areas of a few patches rather than points."
    )
    misleads = (
        "With attention handed back the values do not add up to the answer, and the gap can be larger than the answer. "
        "What biases, the class token and the places of the patches contribute stays with them. "
        "Patch borders show through, and other rules give another map."
    )
    paper = base.Paper(
        "Achtibat, Hatefi, Dreyer, Jain, Wiegand, Lapuschkin & Samek: AttnLRP: Attention-Aware Layer-Wise Relevance "
        "Propagation for Transformers. ICML 2024",
        "https://arxiv.org/abs/2402.05602",
        "@inproceedings{achtibat2024attnlrp, title={AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for "
        "Transformers}, author={Achtibat, Reduan and Hatefi, Sayed Mohammad Vakilzadeh and Dreyer, Maximilian and Jain, "
        "Aakriti and Wiegand, Thomas and Lapuschkin, Sebastian and Samek, Wojciech}, booktitle={ICML}, year={2024}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "attention"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        attention: Literal["explained", "constant"] = Field(
            "explained",
            description="Whether relevance also goes to what decided the attention (AttnLRP), or attention is a constant "
            "and all goes to what was attended to (CP-LRP).",
        )
        gamma: float = Field(0.0, ge=0, le=1, description="By how much linear layers favour positive weights; 0: not.")

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one gradient, whatever the size)
        return 2

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        import torch

        found = []
        for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
            batch = items[start:stop]
            with simplified(params):
                grads = evaluate.gradient(model, torch.stack([i.x for i in batch]), [i.target for i in batch], rows)
            for item, slope in zip(batch, grads, strict=True):
                value = (item.x * slope).sum(0)  # (H, W)
                total, f_x = float(value.double().sum()), float(item.target.value(item.logits[None]))
                about = {
                    "attention": params.attention,
                    "gamma": params.gamma,
                    "f_x": f_x,
                    "total": total,
                    "conservation": total / f_x if f_x else None,
                }
                found.append([maps.image_map(item, value, unit=f"{model.measure} per pixel", signed=True, **about)])
            yield base.Step(stop / len(items))
        return found


def simplified(params: AttnLRP.Params) -> Any:
    """While it is open, functions compute what they always do, and their gradients are those of the rules."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor

    from fanlight.adapters.attention import PRODUCT, SOFTMAX, Tap, masked, shared

    ratios: dict[Any, float] = {F.gelu: 0.5, F.silu: 0.5}  # of f(z) / z where z is 0
    products = PRODUCT | {torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__}

    def halved(y: Tensor) -> Tensor:
        """Each factor of a product gets half."""
        return y / 2 + y.detach() / 2

    def proportional(z: Tensor, y: Tensor, at_zero: float) -> Tensor:
        """An activation hands back y / z."""
        ratio = torch.where(z.abs() > TINY, y / torch.where(z.abs() > TINY, z, 1), at_zero)
        return z * ratio.detach()

    def normalised(
        x: Tensor, shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
    ) -> Tensor:
        """Layer normalisation whose spread is a constant."""
        dims = tuple(range(-len(shape), 0))
        centred = x - x.mean(dims, keepdim=True)
        y = centred * (centred.square().mean(dims, keepdim=True) + eps).rsqrt().detach()
        y = y if weight is None else y * weight
        return y if bias is None else y + bias

    def favouring(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """A linear layer that shares as if its positive weights were larger."""
        z = F.linear(x, weight, bias)
        if params.gamma == 0:
            return z
        more = F.linear(
            x,
            weight + params.gamma * weight.clamp(min=0),
            None if bias is None else bias + params.gamma * bias.clamp(min=0),
        )
        steady = torch.where(more >= 0, more.clamp(min=TINY), more.clamp(max=-TINY))
        return more * (z / steady).detach() + (z - more * (z / steady)).detach()

    class Simplified(Tap):
        def __torch_function__(
            self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            given = kwargs or {}
            if func is F.layer_norm:
                return normalised(*args, **given)
            if func is F.linear:
                return favouring(*args, **given)
            if func in ratios:
                return proportional(args[0], func(*args, **given), ratios[func])
            if func in SOFTMAX and params.attention == "constant":
                return func(*args, **given).detach()
            if func in products and len(args) > 1 and all(isinstance(a, Tensor) and a.requires_grad for a in args[:2]):
                return halved(func(*args, **given))
            if func in PRODUCT:
                return func(*args, **given)
            return super().__torch_function__(func, types, args, given)

        def _attend(
            self,
            query: Tensor,
            key: Tensor,
            value: Tensor,
            attn_mask: Tensor | None = None,
            dropout_p: float = 0.0,  # noqa: ARG002 (nothing is dropped by a model that only answers)
            is_causal: bool = False,
            scale: float | None = None,
            enable_gqa: bool = False,
        ) -> Tensor:
            key, value = shared(query, key, value) if enable_gqa else (key, value)
            scores = halved(query @ key.transpose(-2, -1)) * (
                1 / math.sqrt(query.shape[-1]) if scale is None else scale
            )
            rows = masked(scores, attn_mask, is_causal).softmax(-1)
            mixed = rows.detach() @ value if params.attention == "constant" else halved(rows @ value)
            self.rows.append(rows.detach())  # what its caller may ask for
            return mixed

    return Simplified()
