"""Integrated Gradients: the value gained on the way from a baseline to the picture, shared among the pixels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from fanlight.adapters.base import ImageClassifier

UNIT = "{} per pixel"
FIRST = 8  # nodes of the first rule; each further one has twice as many


class IntegratedGradients(base.Explainer):
    """Sundararajan, Taly & Yan, Axiomatic Attribution (ICML 2017), equation 1:
    IG_i = (x_i - b_i) * integral over a in 0..1 of dS/dx_i at b + a (x - b), by a Gauss-Legendre rule.
    """

    name = "integrated-gradients"
    title = "Integrated Gradients"
    family = "attribution"
    summary = "How much each pixel adds on the way from a baseline picture to this one."
    reading = (
        "Positive pixels raise the explained value compared with the baseline, negative ones lower it. "
        "The values add up to the difference between this picture and the baseline; "
        "the completeness error says how nearly they do."
    )
    misleads = (
        "Everything is relative to the baseline: with a black one, black parts of the picture get nothing, however "
        "important. Single pixels are noisy, so read areas rather than points. "
        "A completeness error above a few percent means too few steps."
    )
    paper = base.Paper(
        "Sundararajan, Taly & Yan: Axiomatic Attribution for Deep Networks. ICML 2017",
        "https://arxiv.org/abs/1703.01365",
        "@inproceedings{sundararajan2017axiomatic, title={Axiomatic Attribution for Deep Networks}, "
        "author={Sundararajan, Mukund and Taly, Ankur and Yan, Qiqi}, booktitle={ICML}, year={2017}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients"})
    returns = ("image-map",)
    version = "2"

    class Params(base.Params):
        steps: int = Field(128, ge=FIRST, le=512, description="Most steps from the baseline to the picture.")
        tolerance: float = Field(
            0.02,
            ge=0,
            le=0.5,
            description="Share of the explained difference by which the sum may miss it; the steps are doubled from 8 "
            "until it is met or the most steps are used. 0: all steps at once.",
        )
        baseline: maps.Baseline = Field("grey", description=maps.BASELINE)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        """With a tolerance: if the last doubling is needed half of the time."""
        rules = schedule(params.steps, params.tolerance)
        return 2 * (1 + (sum(rules) + sum(rules[:-1] or rules)) // 2)

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append([(yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items)))])
        return found


def schedule(steps: int, tolerance: float) -> list[int]:
    """Nodes of the rules that are tried, in order, the last with `steps` of them."""
    if tolerance == 0:
        return [steps]
    return [n for n in (FIRST << k for k in range(steps.bit_length())) if n < steps] + [steps]


def _explain(
    model: ImageClassifier, item: base.Item, params: IntegratedGradients.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, Artifact]:
    import numpy as np
    import torch

    reference = maps.baseline(model, item, params.baseline)
    way = item.x - reference
    ends = torch.stack([item.x, reference])
    logits = yield from evaluate.logits(model, lambda a, b: ends[a:b], 2, ctx, (lo, lo), limit=2)
    f_x, f_b = item.target.value(logits).tolist()
    rules = schedule(params.steps, params.tolerance)
    before: Callable[[], Artifact] | None = None  # what fewer nodes gave
    for rule, nodes in enumerate(rules):
        at, weights = np.polynomial.legendre.leggauss(nodes)  # on -1..1
        path = torch.tensor((at + 1) / 2, dtype=torch.float32, device=item.x.device)
        weight = torch.tensor(weights / 2, dtype=torch.float32, device=item.x.device)
        mean = torch.zeros_like(item.x)  # of the gradient along the way, (3, H, W)
        for start, stop, _ in evaluate.chunks(nodes, evaluate.series_rows(model, ctx)):
            x = reference + path[start:stop, None, None, None] * way
            # Not padded: how many are left is a matter of `nodes` alone, so bytes repeat all the same.
            grads = evaluate.gradient(model, x, [item.target] * (stop - start), stop - start)
            mean += torch.tensordot(weight[start:stop], grads, 1)
            done = (sum(rules[:rule]) + stop) / sum(rules)
            yield base.Step(lo + (hi - lo) * done, f"{nodes} steps", before)
        value = (mean * way).sum(0)  # (H, W)
        before = functools.partial(maps.image_map, item, value, unit=UNIT.format(model.measure), signed=True)
        missed = abs(float(value.double().sum()) - (f_x - f_b))
        error = missed / abs(f_x - f_b) if f_x != f_b else None
        if error is not None and error <= params.tolerance:
            break
    return maps.image_map(
        item,
        value,
        unit=UNIT.format(model.measure),
        signed=True,
        baseline=params.baseline,
        steps=nodes,
        completeness_error=error,
        f_x=f_x,
        f_baseline=f_b,
    )
