"""DeepLift: the difference from a baseline, handed back layer by layer; by Captum, and only where its rule holds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from fanlight.errors import ComputeFailed
from fanlight.explainers import base, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

MISSED = 1e-3  # of all that was handed back: more than rounding, so the rule does not hold


class DeepLift(base.Explainer):
    """Shrikumar, Greenside & Kundaje, Learning Important Features Through Propagating Activation Differences (ICML 2017),
    section 3.5.1: the linear and the rescale rule."""

    name = "deep-lift"
    title = "DeepLift"
    family = "attribution"
    summary = "By how much each pixel makes the answer differ from that of a baseline, handed back layer by layer."
    reading = (
        "Positive pixels raise the explained value compared with the baseline, negative ones lower it. "
        "The values add up to the difference between this picture and the baseline; the completeness error says how "
        "nearly they do. Read areas rather than points."
    )
    misleads = (
        "Everything is relative to the baseline. Each activation is judged on its own, so that what two of them do together "
        "is shared out by a rule rather than by what the model would do. "
        "The map is one of many that add up to the same."
    )
    paper = base.Paper(
        "Shrikumar, Greenside & Kundaje: Learning Important Features Through Propagating Activation Differences. ICML 2017",
        "https://arxiv.org/abs/1704.02685",
        "@inproceedings{shrikumar2017learning, title={Learning Important Features Through Propagating Activation "
        "Differences}, author={Shrikumar, Avanti and Greenside, Peyton and Kundaje, Anshul}, booktitle={ICML}, year={2017}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "rescale-rule"})
    package = ("captum", "compute")
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        baseline: maps.Baseline = Field("grey", description=maps.BASELINE)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        """Picture and baseline forward and back, and both once more for what should come of it."""
        return 6

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:  # noqa: ARG002
        import torch

        base.importable(DeepLift)
        found = []
        for n, item in enumerate(items):
            maps.own_head(item, DeepLift.title)
            reference = maps.baseline(model, item, params.baseline)
            with torch.inference_mode():
                ends = model.logits(torch.stack([item.x, reference])).float().cpu()
            f_x, f_b = item.target.value(ends).tolist()
            value = _difference(model, item, reference)  # (3, H, W)
            total, moved = float(value.double().sum()), float(value.double().abs().sum())
            missed = abs(total - (f_x - f_b))
            if missed > MISSED * max(moved, abs(f_x - f_b)):
                raise ComputeFailed(
                    "The values do not add up to the difference between picture and baseline, so DeepLift's rule does not "
                    "hold for this model.",
                    code="rule_broken",
                    given={"total": total, "difference": f_x - f_b},
                    hint="Integrated Gradients explains the same difference for any model.",
                )
            about = {
                "baseline": params.baseline,
                "completeness_error": missed / abs(f_x - f_b) if f_x != f_b else None,
                "f_x": f_x,
                "f_baseline": f_b,
            }
            found.append([maps.image_map(item, value.sum(0), unit=f"{model.measure} per pixel", signed=True, **about)])
            yield base.Step((n + 1) / len(items))
        return found


def _difference(model: ImageClassifier, item: base.Item, reference: Tensor) -> Tensor:
    """(3, H, W). Captum hooks the model and lets go of it before this returns, so that no other run meets its hooks.

    One picture at a time and one logit at a time: what Captum hands back of a difference of two is that of each.
    """
    import torch
    from captum.attr import DeepLift as Captum
    from torch import nn

    class Whole(nn.Module):
        """The model as a module, so that passes are asked of it, and counted, while its layers can be hooked."""

        def __init__(self) -> None:
            super().__init__()
            self.net = model.net

        def forward(self, x: Tensor) -> Tensor:
            return model.logits(x)

    whole = Whole().eval()
    parts = [(1, item.target.index)] + ([] if item.target.minus is None else [(-1, item.target.minus)])
    total = torch.zeros_like(item.x)
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.filterwarnings("ignore", message="Setting forward, backward hooks")  # it says so each time
        warnings.filterwarnings("ignore", message="Input Tensor .* required_grads")
        for sign, index in parts:
            x = item.x[None].clone().requires_grad_()
            total += sign * Captum(whole).attribute(x, reference[None].clone(), target=index)[0].detach()
    return total
