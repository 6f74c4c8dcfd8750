"""Stability: is the map the same where the picture is the same to the eye?

Noise that one hardly sees is put on the picture, the method is asked again, and the order of its patches is compared
with the stored one. Each draw has a seed of its own, so that the noise of a method that samples counts too.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fanlight.comparison import plane
from fanlight.explainers.base import Item, Step
from fanlight.quality.again import Subject, edges, made, seen
from fanlight.quality.found import Found
from fanlight.quality.ranks import alike, chance, change, reading

if TYPE_CHECKING:
    from torch import Tensor

DRAWS = 8
SIGMA = 0.02  # of the range from black to white: five of 256 steps
STEADY = 0.5  # rank correlation above which a map is said to stay as it is


def cost(passes: int) -> int:
    return DRAWS * (passes + 1)


def run(subject: Subject) -> Generator[Step, None, Found]:
    """Rank correlation of patches (Spearman) and relative change (Yeh et al., On the (In)fidelity and Sensitivity of
    Explanations, NeurIPS 2019), each the mean over DRAWS with its 95 % interval by Student's t."""
    stored, outline = subject.patches(subject.value), subject.patches(edges(subject.model, subject.item, subject.ctx))
    orders, sizes, outlines, outline_sizes = [], [], [], []
    for n in range(DRAWS):
        noisy = seen(subject.model, _noisy(subject, n))
        artifact = yield from made(
            subject,
            subject.model,
            noisy,
            (n / DRAWS, (n + 1) / DRAWS),
            f"with noise on the picture, {n + 1} of {DRAWS}",
        )
        other = subject.patches(plane(artifact))
        orders.append(alike(stored, other))
        sizes.append(change(stored, other))
        sketch = subject.patches(edges(subject.model, noisy, subject.ctx))
        outlines.append(alike(outline, sketch))
        outline_sizes.append(change(outline, sketch))
    found = reading(orders, (-1.0, 1.0))
    random = chance(stored, DRAWS, absolute=False)
    verdict = "good" if found["lo"] > STEADY else "warn" if found["lo"] <= random["hi"] else "plain"
    return Found(
        found=found,
        floors={"random": random, "edges": reading(outlines, (-1.0, 1.0))},
        verdict=verdict,
        more={
            "relative change": reading(sizes, (0.0, float("inf"))),
            "relative change of edges": reading(outline_sizes, (0.0, float("inf"))),
        },
        parameters={"draws": DRAWS, "sigma": SIGMA, "patch": subject.side},
        seeds=[_seed(subject.item, n) for n in range(DRAWS)],
    )


def _seed(item: Item, n: int) -> int:
    return (item.seed + n + 1) % 2**63


def _noisy(subject: Subject, n: int) -> Item:
    """The picture with Gaussian noise on every value, rounded to whole steps and cut at black and white, as a picture is."""
    import torch

    item, model = subject.item, subject.model
    noise = np.random.default_rng((_seed(item, n), 2)).normal(0, SIGMA * 255, item.image.shape)
    image = np.clip(np.rint(item.image + noise), 0, 255).astype(np.uint8)
    black, white = model.colour((0.0,) * 3), model.colour((255.0,) * 3)
    shares: Tensor = torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32) / 255).to(item.x.device)
    return replace(
        item, x=black + (white - black) * shares, image=image, seed=_seed(item, n), key=f"{item.key} noise {n}"
    )
