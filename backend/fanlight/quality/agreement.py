"""Agreement: do methods that work in other ways see the same places?

The references are made for the occasion, at their default parameters, so that the answer does not depend on what
happens to be stored. They are cheap and differ in kind: one hides parts of the picture, one follows gradients.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np

from fanlight.adapters.base import missing
from fanlight.artifact import Artifact
from fanlight.comparison import plane
from fanlight.errors import InvalidField
from fanlight.explainers.base import Explainer, Step, absent
from fanlight.explainers.registry import find
from fanlight.quality.again import Floats, NotMade, Subject, edges, made
from fanlight.quality.found import Found
from fanlight.quality.ranks import chance, resampled

REFERENCES = ("occlusion", "integrated-gradients", "grad-cam", "saliency")
"""In order of preference: the first two that fit the model and are not the method itself."""
MOST = 2
MUCH = 0.5  # rank correlation above which two methods are said to agree


def references(name: str, capabilities: Iterable[str], size: tuple[int, int]) -> list[type[Explainer]]:
    """What a method is compared with. Args: size: (H, W) of the model's input."""
    found: list[type[Explainer]] = []
    for other in REFERENCES:
        explainer = find(other)
        if other == name or missing(explainer.needs, frozenset(capabilities)) or absent(explainer):
            continue
        try:
            explainer.check(explainer.Params(), size)
        except InvalidField:  # its default parameters do not fit so small a picture
            continue
        found.append(explainer)
    return found[:MOST]


def cost(name: str, capabilities: Iterable[str], size: tuple[int, int]) -> int:
    return sum(e.cost(e.Params(), size) for e in references(name, capabilities, size))


def run(subject: Subject) -> Generator[Step, None, Found]:
    """Spearman's coefficient over patches with each reference and the mean of both, with 95 % intervals over resampled
    patches. Where one of two maps has no sign, magnitudes are compared."""
    size = (int(subject.item.x.shape[1]), int(subject.item.x.shape[2]))
    others = references(subject.explainer.name, subject.model.capabilities, size)
    if not others:
        raise NotMade("No other method fits this model, so that there is nothing to compare with.")
    outline = subject.patches(edges(subject.model, subject.item, subject.ctx))
    total = sum(e.cost(e.Params(), size) for e in others)
    ours, theirs, outlines, more, done = [], [], [], {}, 0
    for explainer in others:
        after = done + explainer.cost(explainer.Params(), size)
        artifact = yield from made(
            subject, subject.model, subject.item, (done / total, after / total), f"beside {explainer.title}",
            explainer, explainer.Params(),
        )  # fmt: skip
        done = after
        pair = _pair(subject, artifact)
        ours.append(pair[0])
        theirs.append(pair)
        outlines.append((outline, subject.patches(np.abs(plane(artifact)))))
        more[explainer.title] = resampled([pair])
    found, random = resampled(theirs), chance(ours[0], len(others), absolute=False)
    verdict = "good" if found["lo"] > MUCH else "warn" if found["lo"] <= random["hi"] else "plain"
    return Found(
        found=found,
        floors={"random": random, "edges": resampled(outlines)},
        verdict=verdict,
        more=more,
        parameters={"references": [f"{e.name} {e.version}" for e in others], "patch": subject.side},
        seeds=[subject.item.seed],
    )


def _pair(subject: Subject, other: Artifact) -> tuple[Floats, Floats]:
    """Both maps over patches, comparable."""
    one, two = subject.value, plane(other)
    if not (subject.signed and other.meta["signed"]):
        one, two = np.abs(one), np.abs(two)
    return subject.patches(one), subject.patches(two)
