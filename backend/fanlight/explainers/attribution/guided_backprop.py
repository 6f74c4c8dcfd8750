"""Guided backpropagation: kept as a warning. It redraws the picture and hardly asks the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class GuidedBackprop(base.Explainer):
    """Springenberg, Dosovitskiy, Brox & Riedmiller, Striving for Simplicity (2015), section 3.4: backpropagation in which a
    rectifier also stops what is negative on the way back."""

    name = "guided-backprop"
    title = "Guided backpropagation (bad example)"
    family = "attribution"
    summary = "A sharp picture of the edges that the network passes on. It hardly depends on the class: a bad example."
    reading = (
        "Do not read it as an explanation. It fails the parameter randomisation check: with the last layers replaced by "
        "random ones it looks much the same, so it cannot say why the model answered what it did. "
        "It is here so that you can see how convincing such a picture looks."
    )
    misleads = (
        "It is sharp and follows the outlines of objects, which people take for understanding. "
        "It is close to a reconstruction of the picture from its edges (Nie, Zhang & Patel 2018), and another class gives "
        "almost the same map."
    )
    paper = base.Paper(
        "Springenberg, Dosovitskiy, Brox & Riedmiller: Striving for Simplicity: The All Convolutional Net. ICLR Workshop "
        "2015",
        "https://arxiv.org/abs/1412.6806",
        "@inproceedings{springenberg2015striving, title={Striving for Simplicity: The All Convolutional Net}, "
        "author={Springenberg, Jost Tobias and Dosovitskiy, Alexey and Brox, Thomas and Riedmiller, Martin}, "
        "booktitle={ICLR Workshop}, year={2015}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "rectifiers"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        channels: Literal["max", "sum"] = Field(
            "max", description="How the magnitudes of red, green and blue become one: the largest or their sum."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one gradient, whatever the size)
        return 2

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        import torch

        found = []
        for start, stop, rows in evaluate.chunks(len(items), evaluate.gradient_rows(ctx, len(items))):
            batch = items[start:stop]
            with guided():
                grads = evaluate.gradient(model, torch.stack([i.x for i in batch]), [i.target for i in batch], rows)
            size = grads.abs()  # (B, 3, H, W)
            value = size.amax(1) if params.channels == "max" else size.sum(1)
            found += [
                [maps.image_map(i, v, unit=f"guided {model.measure} per input unit", signed=False)]
                for i, v in zip(batch, value, strict=True)
            ]
            yield base.Step(stop / len(items))
        return found


def guided() -> Any:
    """While it is open, every rectifier stops what is negative on the way back, module or function alike."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor
    from torch.overrides import TorchFunctionMode

    class Rectifier(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, top: float) -> Tensor:
            ctx.save_for_backward((x > 0) & (x < top))
            return x.clamp(0, top)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            (open_,) = ctx.saved_tensors
            return torch.where(open_, grads[0].clamp(min=0), 0), None

    plain = {F.relu, F.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_}

    class Guided(TorchFunctionMode):
        def __torch_function__(
            self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            del types
            given = kwargs or {}
            x = args[0] if args else given.get("input")
            if func in plain:
                return Rectifier.apply(x, float("inf"))
            low, high = _bounds(func, args, given)
            if low == 0 and high is not None and high > 0:
                return Rectifier.apply(x, high)
            return func(*args, **given)

    clipped = {F.hardtanh, F.hardtanh_, torch.clamp, Tensor.clamp}

    def _bounds(func: Callable[..., Any], args: Sequence[Any], given: dict[str, Any]) -> tuple[Any, Any]:
        if func is F.relu6:
            return 0, 6.0
        if func in {torch.clamp_min, Tensor.clamp_min}:
            low = args[1] if len(args) > 1 else given.get("min")
            return (low if isinstance(low, (int, float)) else None), float("inf")
        if func in clipped:
            names = ("min", "max") if func in {torch.clamp, Tensor.clamp} else ("min_val", "max_val")
            ends = [args[n + 1] if len(args) > n + 1 else given.get(name) for n, name in enumerate(names)]
            low, high = (v if isinstance(v, (int, float)) else None for v in ends)
            return low, (float("inf") if high is None and ends[1] is None else high)
        return None, None

    return Guided()
