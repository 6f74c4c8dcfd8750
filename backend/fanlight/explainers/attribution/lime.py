"""LIME: a linear model of what the classifier does near this picture, when superpixels are hidden; for all classes at one cost."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

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


class LIME(base.Explainer):
    """Ribeiro, Singh & Guestrin, "Why Should I Trust You?" (KDD 2016), equation 1 and section 3.4, with ridge regression."""

    name = "lime"
    title = "LIME"
    family = "attribution"
    summary = "What each superpixel adds, in a linear model fitted to the answers near this picture."
    reading = (
        "Positive superpixels raise the explained value where they are shown, negative ones lower it, as far as a sum of "
        "superpixels describes the model near this picture. R² says how far it does: near 1 well, near 0 not at all. "
        "Another class of the same picture costs nothing more."
    )
    misleads = (
        "The kernel decides what near means, and with many superpixels almost no sample is near: then few pictures carry "
        "the fit. Values are estimates and do not add up to anything; another seed shows how far they hold. "
        "They depend on how the picture is cut and on the baseline."
    )
    paper = base.Paper(
        'Ribeiro, Singh & Guestrin: "Why Should I Trust You?": Explaining the Predictions of Any Classifier. KDD 2016',
        "https://arxiv.org/abs/1602.04938",
        '@inproceedings{ribeiro2016why, title={"Why Should I Trust You?": Explaining the Predictions of Any Classifier}, '
        "author={Ribeiro, Marco Tulio and Singh, Sameer and Guestrin, Carlos}, booktitle={KDD}, year={2016}}",
    )
    accepts = "image-classifier"
    returns = ("region-scores", "image-map")
    version = "1"

    class Params(base.Params):
        regions: int = Field(40, ge=2, le=2048, description=superpixels.REGIONS)
        samples: int = Field(
            512, ge=32, le=16384, description="Pictures to ask the model about; at least 2 more than superpixels."
        )
        kernel: float = Field(
            0.25,
            ge=0.05,
            le=5,
            description="Width of the kernel that weighs pictures by their distance (1 - cosine) from the whole one.",
        )
        ridge: float = Field(1.0, ge=0, le=1000, description="Penalty on the squares of the values.")
        compactness: float = Field(10.0, ge=1, le=100, description=superpixels.COMPACTNESS)
        baseline: maps.Hiding = Field("grey", description=maps.HIDING)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        return params.samples

    @classmethod
    def check(cls, params: Params, size: tuple[int, int]) -> None:
        superpixels.check(params.regions, size)
        if params.samples < params.regions + 2:
            raise InvalidField(
                f"{params.regions} superpixels need at least {params.regions + 2} samples.",
                code="invalid_params",
                given={"regions": params.regions, "samples": params.samples},
                allowed={"minimum": params.regions + 2},
                hint="Ask for more samples or for fewer superpixels.",
            )

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append((yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items))))
        return found


def draw(n: int, samples: int, rng: np.random.Generator) -> Members:
    """Which of n superpixels are shown, (samples, n): the whole picture first, then each by the toss of a coin."""
    members = rng.random((samples, n)) < 0.5
    members[0] = True
    return members


def near(members: Members, width: float) -> Floats:
    """Weight of each picture, (M,): exp(-d^2 / (2 width^2)), d = 1 - cosine between what is shown and everything."""
    d = 1 - np.sqrt(members.mean(1))
    return np.asarray(np.exp(-((d / width) ** 2) / 2))


def fit(members: Members, weights: Floats, values: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Weighted ridge regression of K answers at once; the constant is not penalised.

    Args:
        members: (M, n).
        weights: (M,).
        values: (M, K).

    Returns: coefficients (n, K) and the weighted R^2 of each, (K,).
    """
    z = members.astype(np.float64)
    share = weights / weights.sum()
    z_mean, v_mean = share @ z, share @ values
    z, v = z - z_mean, values - v_mean
    normal = z.T @ (weights[:, None] * z) + ridge * np.eye(z.shape[1])
    # not positive definite where there is no penalty and superpixels were shown alike in all that counts
    solved = np.linalg.pinv(normal, hermitian=True) if ridge == 0 else np.linalg.inv(normal)
    beta = solved @ (z.T @ (weights[:, None] * v))
    left, spread = share @ (v - z @ beta) ** 2, share @ v**2
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = np.where(spread > 0, 1 - left / spread, 1.0)
    return np.asarray(beta), r2


def _explain(
    model: ImageClassifier, item: base.Item, params: LIME.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, list[Artifact]]:
    import torch

    LIME.check(params, (item.x.shape[1], item.x.shape[2]))
    label = yield from superpixels.of(item, params.regions, params.compactness, ctx, lo)
    n = int(label.max()) + 1
    members = draw(n, params.samples, np.random.default_rng(item.seed))

    def evaluation() -> Generator[base.Step, None, Tensor]:
        hidden = maps.hider(model, item, params.baseline)
        kept = torch.from_numpy(members).to(item.x.device)
        at = torch.from_numpy(label).to(item.x.device, torch.int64)
        rows = maps.hiding_rows(ctx, params.baseline)
        return (
            yield from evaluate.logits(
                model, lambda a, b: hidden(kept[a:b][:, at]), len(kept), ctx, (lo, hi), limit=rows
            )
        )

    key = ("lime", item.key, params.regions, params.compactness, params.samples, params.baseline, item.seed)
    logits = (yield from evaluate.once(key, ctx, evaluation)).double()  # (M, K)
    weights = near(members, params.kernel)
    beta, _ = fit(members, weights, logits.numpy(), params.ridge)
    answers = item.target.value(logits)
    chosen, r2 = fit(members, weights, answers.numpy()[:, None], params.ridge)
    about = {
        "baseline": params.baseline,
        "regions": n,
        "evaluations": params.samples,
        "effective_samples": float(weights.sum() ** 2 / (weights**2).sum()),
        "r2": float(r2[0]),
        "f_x": float(answers[0]),
    }
    unit = f"{model.measure} per superpixel"
    head = {"unit": unit, "signed": True, "box": list(item.box), "target": item.target.json()}
    arrays = {"label": label, "value": chosen[:, 0].astype(np.float32), "all": beta.astype(np.float32)}
    regions = Artifact("regions", "region-scores", arrays, {**head, **about})
    return [regions, maps.image_map(item, torch.from_numpy(arrays["value"][label]), unit=unit, signed=True, **about)]
