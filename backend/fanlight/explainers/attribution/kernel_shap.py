"""KernelSHAP: the value of the answer, shared fairly among the squares of the picture, for all classes at one cost."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.errors import InvalidField
from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

Floats = np.ndarray[Any, np.dtype[np.float64]]
Coalitions = np.ndarray[Any, np.dtype[np.bool_]]


class KernelSHAP(base.Explainer):
    """Lundberg & Lee, A Unified Approach (NeurIPS 2017), theorem 2, with paired sampling (Covert & Lee, AISTATS
    2021)."""

    name = "kernel-shap"
    title = "KernelSHAP"
    family = "attribution"
    summary = "The answer shared fairly among squares of the picture, estimated by hiding many of them at once."
    reading = (
        "Positive squares raise the explained value, negative ones lower it, each averaged over many combinations of the other"
        " squares. "
        "The values add up exactly to the difference between this picture and the baseline. "
        "Another class of the same picture costs nothing more."
    )
    misleads = (
        "The values are estimates: with few samples small ones are noise, and another seed shows by how much. "
        "They depend on the baseline and on how the picture is cut into squares; most of the pictures it asks about "
        "look like none "
        "the model has seen."
    )
    paper = base.Paper(
        "Lundberg & Lee: A Unified Approach to Interpreting Model Predictions. NeurIPS 2017",
        "https://arxiv.org/abs/1705.07874",
        "@inproceedings{lundberg2017unified, title={A Unified Approach to Interpreting Model Predictions}, "
        "author={Lundberg, Scott M. and Lee, Su-In}, booktitle={NeurIPS}, year={2017}}",
    )
    accepts = "image-classifier"
    returns = ("region-scores", "image-map")
    version = "1"

    class Params(base.Params):
        patch: int = Field(32, ge=8, le=128, description="Side of a square in pixels of the model's input.")
        samples: int = Field(
            512,
            ge=32,
            le=16384,
            description="Most pictures to ask the model about; at least 2 per square and 2 more. "
            "All combinations are asked where that takes fewer.",
        )
        baseline: maps.Hiding = Field("grey", description=maps.HIDING)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:
        return int(min(params.samples, 2 ** _regions(params, size)))

    @classmethod
    def check(cls, params: Params, size: tuple[int, int]) -> None:
        n = _regions(params, size)
        if n < 2 or params.samples < min(2 * n + 2, 2**n):
            raise InvalidField(
                f"Squares of {params.patch} px make {n} regions, which need at least {2 * n + 2} samples and two regions.",
                code="invalid_params",
                given={"patch": params.patch, "samples": params.samples},
                hint="Ask for more samples or for larger squares." if n > 1 else "Ask for smaller squares.",
            )

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append((yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items))))
        return found


def _regions(params: KernelSHAP.Params, size: tuple[int, int]) -> int:
    """Into how many squares a picture of `size` is cut."""
    return math.ceil(size[0] / params.patch) * math.ceil(size[1] / params.patch)


def coalitions(n: int, samples: int, rng: np.random.Generator) -> tuple[Coalitions, Floats]:
    """Which of n players are in, (M, n), and the weight of each row, (M,); the empty and the full coalition are not
    among them.

    The Shapley kernel gives size s the total weight (n - 1) / (s (n - s)). Sizes are taken in pairs (s, n - s) from
    the outside in: a pair is enumerated where its share of the samples that are left covers it, the first always,
    since it makes the regression well posed. The rest is drawn in pairs of a coalition and its complement, each row
    standing for an equal part of the weight that is left.
    """
    sizes = list(range(1, n // 2 + 1))
    weight = {s: (n - 1) / (s * (n - s)) * (1 if 2 * s == n else 2) for s in sizes}
    rows: list[Coalitions] = []
    weights: list[Floats] = []
    left = samples - 2
    while sizes:
        s = sizes[0]
        pair = math.comb(n, s) * (1 if 2 * s == n else 2)
        if pair > left or (s > 1 and pair > left * weight[s] / sum(weight[t] for t in sizes)):
            break
        members = _subsets(n, s)
        rows.append(members if 2 * s == n else np.concatenate([members, ~members]))
        weights.append(np.full(pair, weight[s] / pair))
        left -= pair
        sizes.pop(0)
    draws = left // 2
    if sizes and draws:
        share = np.array([weight[s] for s in sizes])
        drawn = rng.choice(np.array(sizes), size=draws, p=share / share.sum())
        order = rng.random((draws, n)).argsort(1)
        members = np.zeros((draws, n), dtype=bool)
        np.put_along_axis(members, order, np.arange(n)[None] < drawn[:, None], axis=1)
        rows.append(np.stack([members, ~members], 1).reshape(2 * draws, n))
        weights.append(np.full(2 * draws, share.sum() / (2 * draws)))
    return np.concatenate(rows), np.concatenate(weights)


def _subsets(n: int, s: int) -> Coalitions:
    """All subsets of size s of n players, (comb(n, s), n)."""
    from itertools import combinations

    chosen = np.array(list(combinations(range(n), s)))
    members = np.zeros((len(chosen), n), dtype=bool)
    np.put_along_axis(members, chosen, True, axis=1)
    return members


def regression(members: Coalitions, weights: Floats, values: Floats, empty: Floats, full: Floats) -> Floats:
    """Shapley values (n, K) of K games at once.

    Minimises sum_m w_m (v_m - v_empty - sum of phi over members)^2 subject to sum of phi = v_full - v_empty, by
    Lagrange's multiplier.

    Args:
        members: (M, n).
        weights: (M,).
        values: (M, K).
        empty, full: (K,) values of nobody and of everybody.
    """
    z = members.astype(np.float64)
    normal = z.T @ (weights[:, None] * z)  # (n, n)
    right = z.T @ (weights[:, None] * (values - empty))  # (n, K)
    solved = np.linalg.solve(normal, np.concatenate([right, np.ones((len(normal), 1))], 1))
    free, ones = solved[:, :-1], solved[:, -1:]
    return np.asarray(free - ones * (free.sum(0) - (full - empty)) / ones.sum())


def fit(members: Coalitions, weights: Floats, gain: Floats, phi: Floats) -> float:
    """Weighted R^2 of the additive model: 1 where squares do not interact; gain is (M,), phi (n,)."""
    residual = weights @ (gain - members @ phi) ** 2
    spread = weights @ (gain - np.average(gain, weights=weights)) ** 2
    return float(1 - residual / spread) if spread > 0 else 1.0


def _explain(
    model: ImageClassifier, item: base.Item, params: KernelSHAP.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, list[Artifact]]:
    import torch

    size = (item.x.shape[1], item.x.shape[2])
    KernelSHAP.check(params, size)
    label = maps.squares(size, params.patch)
    n = int(label.max()) + 1
    members, weights = coalitions(n, params.samples, np.random.default_rng(item.seed))

    def evaluation() -> Generator[base.Step, None, Tensor]:
        hidden = maps.hider(model, item, params.baseline)
        ends = np.array([[False] * n, [True] * n])
        kept = torch.from_numpy(np.concatenate([ends, members])).to(item.x.device)  # (M + 2, n)
        at = torch.from_numpy(label).to(item.x.device, torch.int64)
        return (
            yield from evaluate.logits(
                model,
                lambda a, b: hidden(kept[a:b][:, at]),
                len(kept),
                ctx,
                (lo, hi),
                limit=maps.hiding_rows(ctx, params.baseline),
            )
        )

    key = ("kernel-shap", item.key, params.patch, params.samples, params.baseline, item.seed)
    logits = yield from evaluate.once(key, ctx, evaluation)
    values = logits.double().numpy()  # (M + 2, K)
    phi = regression(members, weights, values[2:], values[0], values[1])
    chosen = item.target.value(torch.from_numpy(phi)).numpy()  # (n,)
    answers = item.target.value(logits.double()).numpy()  # (M + 2,)
    f_b, f_x = answers[:2].tolist()
    error = abs(float(chosen.sum()) - (f_x - f_b)) / abs(f_x - f_b) if f_x != f_b else None
    about = {
        "baseline": params.baseline,
        "patch": params.patch,
        "evaluations": len(values),
        "exact": len(values) == 2**n,
        "r2": fit(members, weights, answers[2:] - f_b, chosen),
        "completeness_error": error,
        "f_x": f_x,
        "f_baseline": f_b,
    }
    unit = f"{model.measure} per square"
    head = {"unit": unit, "signed": True, "box": list(item.box), "target": item.target.json()}
    arrays = {"label": label, "value": chosen.astype(np.float32), "all": phi.astype(np.float32)}
    regions = Artifact("regions", "region-scores", arrays, {**head, **about})
    picture = torch.from_numpy(arrays["value"][label])
    return [regions, maps.image_map(item, picture, unit=unit, signed=True, **about)]
