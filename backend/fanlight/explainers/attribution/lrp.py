"""Layer-wise relevance propagation for convolutional networks: the answer handed back layer by layer, by zennit's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from fanlight.explainers import base, maps

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fanlight.adapters.base import ImageClassifier

PASSES = {
    "epsilon-gamma-box": 28,
    "epsilon": 12,
}  # a layer under the gamma rule is computed five times, forward and back


class LRP(base.Explainer):
    """Bach, Binder, Montavon, Klauschen, Müller & Samek, On Pixel-Wise Explanations (PLOS ONE 2015), with the composite of
    rules of Montavon et al. (2019): z-box at the input, gamma in convolutions, epsilon in linear layers."""

    name = "lrp"
    title = "Layer-wise relevance propagation"
    family = "attribution"
    summary = "The answer handed back layer by layer to the pixels, each layer sharing out what it got."
    reading = (
        "Positive pixels carry evidence for the explained value, negative ones against it. Each layer shares out what it "
        "gets, so the values would add up to the answer, but for what biases keep: "
        "the conservation printed with the map says how much arrived."
    )
    misleads = (
        "The rules are chosen by people, and other rules give another map; gamma favours evidence for the class. "
        "A map with fine outlines need not be faithful: compare its trust record. "
        "Where much is kept by biases, the sizes of the values mean little."
    )
    paper = base.Paper(
        "Bach, Binder, Montavon, Klauschen, Müller & Samek: On Pixel-Wise Explanations for Non-Linear Classifier Decisions "
        "by Layer-Wise Relevance Propagation. PLOS ONE 2015",
        "https://doi.org/10.1371/journal.pone.0130140",
        "@article{bach2015pixel, title={On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise "
        "Relevance Propagation}, author={Bach, Sebastian and Binder, Alexander and Montavon, Gr{\\'e}goire and Klauschen, "
        'Frederick and M{\\"u}ller, Klaus-Robert and Samek, Wojciech}, journal={PLOS ONE}, volume={10}, number={7}, '
        "year={2015}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients", "relevance-rules"})
    package = ("zennit", "lrp")
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        rules: Literal["epsilon-gamma-box", "epsilon"] = Field(
            "epsilon-gamma-box",
            description="z-box at the input, gamma in convolutions and epsilon in linear layers; or epsilon everywhere.",
        )
        gamma: float = Field(0.25, ge=0, le=10, description="By how much the gamma rule favours positive weights.")

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        return PASSES[params.rules]

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:  # noqa: ARG002
        base.importable(LRP)
        from fanlight.adapters.canonical import rewritten

        net = rewritten(model.net, model.size)
        found = []
        yield base.Step(0.0, "rewriting the network")
        for n, item in enumerate(items):
            maps.own_head(item, LRP.title)
            value, start = _relevance(net, model, item, params)  # (3, H, W)
            model.asked += PASSES[params.rules]  # of a copy, which the model cannot count
            arrived = float(value.double().sum())
            found.append(
                [
                    maps.image_map(
                        item,
                        value.sum(0),
                        unit=f"{model.measure} per pixel",
                        signed=True,
                        rules=params.rules,
                        gamma=params.gamma,
                        f_x=start,
                        total=arrived,
                        conservation=arrived / start if start else None,
                    )
                ]
            )
            yield base.Step((n + 1) / len(items))
        return found


def _relevance(net: nn.Module, model: ImageClassifier, item: base.Item, params: LRP.Params) -> tuple[Tensor, float]:
    """Relevance of each value of the picture, (3, H, W), and what was handed back in all. The hooks are on the copy alone."""
    import torch
    from zennit.composites import NameMapComposite

    x = item.x[None].clone().requires_grad_()
    with NameMapComposite(_rules(net, model, params)).context(net) as hooked, torch.enable_grad():
        logits = hooked(x)
        share = torch.zeros_like(logits)
        share[0, item.target.index] = 1
        if item.target.minus is not None:
            share[0, item.target.minus] = -1
        start = share * logits.detach()
        (value,) = torch.autograd.grad(logits, x, start)
    return value[0], float(start.double().sum())


def _rules(net: Any, model: ImageClassifier, params: LRP.Params) -> list[tuple[list[str], Any]]:
    """Which rule each module of the rewritten network gets, in the order in which they run; the others pass gradients on."""
    from torch import nn
    from zennit.rules import Epsilon, Gamma, Norm, Pass, ZBox

    from fanlight.adapters.canonical import ACTIVATING, AVERAGING, WEIGHTED, Add

    low, high = (model.colour((v,) * 3)[None] for v in (0.0, 255.0))
    found: list[tuple[list[str], Any]] = []
    first = True
    for node in net.graph.nodes:
        if node.op != "call_module":
            continue
        module = net.get_submodule(node.target)
        rule: Any = None
        if isinstance(module, WEIGHTED):
            boxed = params.rules == "epsilon-gamma-box"
            if boxed and first:
                rule = ZBox(low=low, high=high)
            elif boxed and isinstance(module, nn.Conv2d):
                rule = Gamma(gamma=params.gamma)
            else:
                rule = Epsilon()
            first = False
        elif isinstance(module, ACTIVATING):
            rule = Pass()
        elif isinstance(module, (*AVERAGING, Add)):
            rule = Norm()
        if rule is not None:
            found.append(([node.target], rule))
    return found
