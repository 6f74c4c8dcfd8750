"""Shapley values of superpixels: exact where all combinations can be asked, else by random orders, each with its reverse."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.errors import InvalidField
from fanlight.explainers import base, evaluate, maps, superpixels

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

Floats = np.ndarray[Any, np.dtype[np.float64]]
Members = np.ndarray[Any, np.dtype[np.bool_]]
Orders = np.ndarray[Any, np.dtype[np.int64]]
SHOWN = 5  # regions whose convergence is drawn
Z95 = 1.96


class Shapley(base.Explainer):
    """Castro, Gómez & Tejada, Polynomial calculation of the Shapley value based on sampling (2009), with antithetic pairs of
    orders (Mitchell, Cooper, Frank & Holmes, JMLR 2022)."""

    name = "shapley"
    title = "Shapley values"
    family = "attribution"
    summary = "The answer shared fairly among superpixels, exactly or by random orders, with the error of each value."
    reading = (
        "Positive superpixels raise the explained value, negative ones lower it, each averaged over the orders in which "
        "superpixels can be uncovered. They add up exactly to the difference between this picture and the baseline. "
        "The curves show how the largest values settled, with 95 % intervals. Another class costs nothing more."
    )
    misleads = (
        "Values whose interval holds 0 say nothing: ask for more samples. "
        "They depend on the baseline and on how the picture is cut; most of the pictures it asks about look like none the "
        "model has seen. A superpixel that matters only together with another gets half of what both do."
    )
    paper = base.Paper(
        "Castro, Gómez & Tejada: Polynomial calculation of the Shapley value based on sampling. Computers & Operations "
        "Research 2009",
        "https://doi.org/10.1016/j.cor.2008.04.004",
        "@article{castro2009polynomial, title={Polynomial calculation of the Shapley value based on sampling}, "
        "author={Castro, Javier and G{\\'o}mez, Daniel and Tejada, Juan}, journal={Computers \\& Operations Research}, "
        "volume={36}, number={5}, year={2009}}",
    )
    accepts = "image-classifier"
    returns = ("region-scores", "image-map", "curves")
    version = "1"

    class Params(base.Params):
        regions: int = Field(20, ge=2, le=256, description=superpixels.REGIONS)
        samples: int = Field(
            768,
            ge=16,
            le=16384,
            description="Most pictures to ask the model about; a pair of orders takes twice as many as there are "
            "superpixels. All combinations are asked where that takes fewer.",
        )
        compactness: float = Field(10.0, ge=1, le=100, description=superpixels.COMPACTNESS)
        baseline: maps.Hiding = Field("grey", description=maps.HIDING)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        n = params.regions
        return int(2**n if 2**n <= params.samples else 2 + 2 * (n - 1) * pairs(n, params.samples))

    @classmethod
    def check(cls, params: Params, size: tuple[int, int]) -> None:
        superpixels.check(params.regions, size)
        n = params.regions
        least = min(2**n, 2 + 4 * (n - 1))  # two pairs, since an error needs two
        if params.samples < least:
            raise InvalidField(
                f"{n} superpixels need at least {least} samples: two orders, each with its reverse.",
                code="invalid_params",
                given={"regions": n, "samples": params.samples},
                allowed={"minimum": least},
                hint="Ask for more samples or for fewer superpixels.",
            )

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append((yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items))))
        return found


class Estimate(NamedTuple):
    """Shapley values (n, K), their standard errors (n, K), and how they came about: values after each pair of orders,
    (P, n, K), and their errors."""

    value: Floats
    error: Floats
    running: Floats
    errors: Floats


def pairs(n: int, samples: int) -> int:
    """How many pairs of orders of n players `samples` pictures allow, nobody and everybody asked once."""
    return (samples - 2) // (2 * (n - 1))


def orders(n: int, pairs: int, rng: np.random.Generator) -> Orders:
    """Random orders, each followed by its reverse, (2 pairs, n)."""
    drawn = np.stack([rng.permutation(n) for _ in range(pairs)])
    return np.stack([drawn, drawn[:, ::-1]], 1).reshape(2 * pairs, n)


def growing(order: Orders) -> Members:
    """The coalitions on the way of each order, without nobody and everybody: (orders (n - 1), n), order by order."""
    place = order.argsort(1)  # (O, n): when each player comes
    n = order.shape[1]
    return np.asarray(place[:, None] < np.arange(1, n)[None, :, None]).reshape(-1, n)


def everything(n: int) -> Members:
    """All coalitions, (2^n, n): row m holds the binary digits of m."""
    return np.asarray((np.arange(2**n)[:, None] >> np.arange(n)) & 1, dtype=bool)


def exact(values: Floats) -> Floats:
    """Values (2^n, K) of `everything` -> Shapley values (n, K), from the definition."""
    from math import comb

    n = len(values).bit_length() - 1
    size = everything(n).sum(1)
    weight = np.array([1 / (n * comb(n - 1, s)) for s in range(n)])
    phi = np.empty((n, values.shape[1]))
    for i in range(n):
        without = np.flatnonzero((np.arange(len(values)) >> i) & 1 == 0)
        phi[i] = weight[size[without]] @ (values[without | (1 << i)] - values[without])
    return phi


def estimate(order: Orders, values: Floats, empty: Floats, full: Floats) -> Estimate:
    """From the values (orders (n - 1), K) of `growing(order)`; each pair of orders is one independent draw."""
    count, n = order.shape
    k = values.shape[1]
    ends = (np.broadcast_to(v, (count, 1, k)) for v in (empty, full))
    way = np.concatenate([next(ends), values.reshape(count, n - 1, k), next(ends)], 1)
    single = np.empty((count, n, k))
    np.put_along_axis(single, order[:, :, None], np.diff(way, axis=1), 1)
    drawn = single.reshape(count // 2, 2, n, k).mean(1)  # (P, n, K)
    p = np.arange(1, len(drawn) + 1)[:, None, None]
    running = drawn.cumsum(0) / p
    spread = np.maximum((drawn**2).cumsum(0) / p - running**2, 0)
    errors = np.sqrt(spread / np.maximum(p - 1, 1))
    return Estimate(running[-1], errors[-1], running, errors)


def _explain(
    model: ImageClassifier, item: base.Item, params: Shapley.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, list[Artifact]]:
    import torch

    Shapley.check(params, (item.x.shape[1], item.x.shape[2]))
    label = yield from superpixels.of(item, params.regions, params.compactness, ctx, lo)
    n = int(label.max()) + 1
    whole = 2**n <= params.samples or n < 2
    order = orders(n, 1 if whole else pairs(n, params.samples), np.random.default_rng(item.seed))
    ends = np.array([[False] * n, [True] * n])
    members = everything(n) if whole else np.concatenate([ends, growing(order)])
    unit = f"{model.measure} per superpixel"

    def so_far(logits: Tensor) -> Artifact:
        answers = item.target.value(logits).double().numpy()[:, None]
        ready = (len(answers) - 2) // (2 * (n - 1))
        value = np.zeros(n)
        if ready and not whole:
            asked = answers[2 : 2 + 2 * ready * (n - 1)]
            value = estimate(order[: 2 * ready], asked, answers[0], answers[1]).value[:, 0]
        return maps.image_map(item, torch.from_numpy(value.astype(np.float32)[label]), unit=unit, signed=True)

    def evaluation() -> Generator[base.Step, None, Tensor]:
        hidden = maps.hider(model, item, params.baseline)
        kept = torch.from_numpy(members).to(item.x.device)
        at = torch.from_numpy(label).to(item.x.device, torch.int64)
        rows = maps.hiding_rows(ctx, params.baseline)
        preview = None if whole else so_far
        return (
            yield from evaluate.logits(
                model, lambda a, b: hidden(kept[a:b][:, at]), len(kept), ctx, (lo, hi), preview=preview, limit=rows
            )
        )

    key = ("shapley", item.key, params.regions, params.compactness, params.samples, params.baseline, item.seed)
    logits = (yield from evaluate.once(key, ctx, evaluation)).double()  # (M, K)
    answers = item.target.value(logits).numpy()[:, None]  # (M, 1)
    f_b, f_x = (float(v) for v in answers[[0, -1 if whole else 1], 0])
    if whole:
        every, value = exact(logits.numpy()), exact(answers)[:, 0]
        error = np.zeros(n)
        curve = _convergence(np.array([0, len(members)]), np.stack([value] * 2), np.zeros((2, n)), model.measure)
    else:
        every = _values(order, logits.numpy())
        found = estimate(order, answers[2:], answers[0], answers[1])
        value, error = found.value[:, 0], found.error[:, 0]
        asked = 2 + 2 * (n - 1) * np.arange(1, len(found.running) + 1)
        curve = _convergence(asked[1:], found.running[1:, :, 0], found.errors[1:, :, 0], model.measure)
    gain = f_x - f_b
    about = {
        "baseline": params.baseline,
        "regions": n,
        "evaluations": len(members),
        "exact": whole,
        "pairs": 0 if whole else len(order) // 2,
        "standard_error": [float(e) for e in error],
        "completeness_error": abs(float(value.sum()) - gain) / abs(gain) if gain else None,
        "f_x": f_x,
        "f_baseline": f_b,
    }
    head = {"unit": unit, "signed": True, "box": list(item.box), "target": item.target.json()}
    arrays = {"label": label, "value": value.astype(np.float32), "all": every.astype(np.float32)}
    regions = Artifact("regions", "region-scores", arrays, {**head, **about})
    picture = maps.image_map(item, torch.from_numpy(arrays["value"][label]), unit=unit, signed=True, **about)
    return [regions, picture, curve]


def _values(order: Orders, values: Floats) -> Floats:
    """The values of all classes, (n, K); class by class they would fill the memory with what nobody looks at."""
    step = max(1, 2**22 // order.size)
    parts = [values[:, k : k + step] for k in range(0, values.shape[1], step)]
    return np.concatenate([estimate(order, v[2:], v[0], v[1]).value for v in parts], 1)


def _convergence(asked: Orders, running: Floats, errors: Floats, measure: str) -> Artifact:
    """How the values of the largest regions settled: asked (T,), running and errors (T, n)."""
    largest = np.argsort(-np.abs(running[-1]), kind="stable")[:SHOWN]
    y, error = running[:, largest].T, errors[:, largest].T
    arrays = {"x": asked, "y": y, "lo": y - Z95 * error, "hi": y + Z95 * error}
    return Artifact(
        "convergence",
        "curves",
        {name: np.ascontiguousarray(a, dtype=np.float32) for name, a in arrays.items()},
        {
            "x_label": "pictures asked about",
            "y_label": f"{measure} per superpixel",
            "series": [f"superpixel {r + 1}" for r in largest.tolist()],
        },
    )
