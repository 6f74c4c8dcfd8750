"""Expected Gradients: Integrated Gradients averaged over many baselines, each asked at one random place of the way."""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier


class ExpectedGradients(base.Explainer):
    """Erion, Janizek, Sturmfels, Lundberg & Lee, Improving Performance of Deep Learning Models with Axiomatic Attribution
    Priors (2021), equation 3: the mean of (x - b) dS/dx at b + a (x - b), b drawn from a distribution, a from 0..1."""

    name = "expected-gradients"
    title = "Expected Gradients"
    family = "attribution"
    summary = "How much each pixel adds on the way from many baseline pictures to this one, on average (GradientSHAP)."
    reading = (
        "Positive pixels raise the explained value compared with the baselines, negative ones lower it. "
        "The values should add up to the difference between this picture and the mean of the baselines; the completeness "
        "error says how nearly they do, its standard error how much of that is chance."
    )
    misleads = (
        "The values are estimates: with few samples the map is noise, and another seed shows by how much. "
        "Many baselines hide that each is arbitrary; noise around grey is still about grey. "
        "Single pixels are noisy, so read areas rather than points."
    )
    paper = base.Paper(
        "Erion, Janizek, Sturmfels, Lundberg & Lee: Improving Performance of Deep Learning Models with Axiomatic "
        "Attribution Priors and Expected Gradients. Nature Machine Intelligence 2021",
        "https://arxiv.org/abs/1906.10670",
        "@article{erion2021improving, title={Improving Performance of Deep Learning Models with Axiomatic Attribution "
        "Priors and Expected Gradients}, author={Erion, Gabriel and Janizek, Joseph D. and Sturmfels, Pascal and "
        "Lundberg, Scott M. and Lee, Su-In}, journal={Nature Machine Intelligence}, year={2021}}",
    )
    accepts = "image-classifier"
    needs = frozenset({"gradients"})
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        samples: int = Field(64, ge=8, le=1024, description="Baselines to draw, each with one place on the way.")
        around: Literal["grey", "black", "white", "mean", "blur", "all"] = Field(
            "grey",
            description="What the baselines are drawn around: mid grey, black, white, the picture's mean colour, the "
            "picture blurred, or each of the five in turn.",
        )
        noise: float = Field(
            0.2,
            ge=0,
            le=1,
            description="Standard deviation of the noise around them, as a share of the range from black to white.",
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the same for every size)
        """A gradient for each sample, and the value of each baseline, against which the sum is checked."""
        return 3 * params.samples + 1

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append([(yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items)))])
        return found


def _explain(
    model: ImageClassifier, item: base.Item, params: ExpectedGradients.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, Artifact]:
    import torch

    names: tuple[maps.Baseline, ...] = get_args(maps.Baseline) if params.around == "all" else (params.around,)
    centres = torch.stack([maps.baseline(model, item, name) for name in names])  # (J, 3, H, W)
    sigma = params.noise * (model.colour((255.0,) * 3) - model.colour((0.0,) * 3))  # (3, 1, 1)
    rng = np.random.default_rng(item.seed)
    total = torch.zeros(item.x.shape, dtype=torch.float64, device=item.x.device)
    sums: list[float] = []  # of each sample's attribution
    answers: list[Tensor] = []  # of each baseline

    def made(total: Tensor, n: int, **meta: object) -> Artifact:
        return maps.image_map(item, (total / n).sum(0), unit=f"{model.measure} per pixel", signed=True, **meta)

    for start, stop, rows in evaluate.chunks(params.samples, evaluate.series_rows(model, ctx)):
        places, drawn = zip(*(_draw(rng, item.x.shape) for _ in range(start, stop)), strict=True)
        noise = torch.from_numpy(np.stack(drawn)).to(item.x.device)
        at = torch.tensor(places, dtype=torch.float32, device=item.x.device)[:, None, None, None]
        reference = centres[torch.arange(start, stop) % len(names)] + sigma * noise
        grads = evaluate.gradient(model, reference + at * (item.x - reference), [item.target] * (stop - start), rows)
        single = ((item.x - reference) * grads).double()
        total += single.sum(0)
        sums += single.sum((1, 2, 3)).tolist()
        yield base.Step(
            lo + (hi - lo) * start / params.samples, f"{start} baselines"
        )  # a gradient is a step of its own
        with torch.inference_mode():
            out = model.logits(evaluate.padded(reference, rows))[: stop - start].float().cpu()
        answers.append(item.target.value(out).double())
        yield base.Step(
            lo + (hi - lo) * stop / params.samples, f"{stop} baselines", functools.partial(made, total.clone(), stop)
        )
    f_b = torch.cat(answers).numpy()
    f_x = float(item.target.value(item.logits[None]))
    missed = np.array(sums) - (f_x - f_b)  # by each sample
    gain = abs(f_x - float(f_b.mean()))
    return made(
        total,
        params.samples,
        around=params.around,
        noise=params.noise,
        samples=params.samples,
        completeness_error=abs(float(missed.mean())) / gain if gain else None,
        completeness_standard_error=float(missed.std(ddof=1)) / len(missed) ** 0.5 / gain if gain else None,
        f_x=f_x,
        f_baseline=float(f_b.mean()),
    )


def _draw(
    rng: np.random.Generator, shape: Sequence[int]
) -> tuple[float, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """A place on the way, 0..1, and standard normal noise."""
    return float(rng.random()), rng.standard_normal(tuple(shape), dtype=np.float32)
