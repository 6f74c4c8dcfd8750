"""ProtoViT: which parts of the picture look like which parts of training pictures, and what each of these adds to the answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from fanlight.adapters import heads
from fanlight.artifact import Artifact
from fanlight.errors import ComputeFailed, InvalidField
from fanlight.explainers import base, changes, evaluate, matches

if TYPE_CHECKING:
    from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier

SUM = 1e-5
"""How far the sum of points may be from the logit, relative to the largest logit."""
RIVALS = 5
TOP = 10


class ProtoViT(base.Explainer):
    """Ma, Donnelly, Liu, Vosoughi, Rudin & Chen, Interpretable Image Classification with Adaptive Prototype-based Vision Transformers (NeurIPS 2024),
    sections 3 and 4.2. Read from the model itself: nothing is estimated."""

    name = "protovit"
    title = "This looks like that"
    family = "prototypes"
    summary = "Parts of the picture beside the parts of training pictures that the model compares them with, and the points that each gives."
    reading = (
        "Each row is a prototype: four numbered boxes in this picture and the four boxes of a training picture that they are compared with. "
        "Similarity times weight is what the row adds to the class, in points; the points of all prototypes add up to the logit exactly. "
        "Muting a prototype takes its points away, and nothing else."
    )
    misleads = (
        "Two places that look alike to the network need not look alike to anybody: colour, texture and place in the picture count for it. "
        "A token knows the whole picture, so a box is where it belongs, not all that it depends on. "
        "A prototype that was moved far at its projection shows a picture that it was not trained to mean."
    )
    paper = base.Paper(
        "Ma, Donnelly, Liu, Vosoughi, Rudin & Chen: Interpretable Image Classification with Adaptive Prototype-based Vision "
        "Transformers. NeurIPS 2024",
        "https://arxiv.org/abs/2410.20722",
        "@inproceedings{ma2024protovit, title={Interpretable Image Classification with Adaptive Prototype-based Vision Transformers}, "
        "author={Ma, Chiyu and Donnelly, Jon and Liu, Wenjun and Vosoughi, Soroush and Rudin, Cynthia and Chen, Chaofan}, "
        "booktitle={NeurIPS}, year={2024}}",
    )
    accepts = "prototype-classifier"
    returns = ("prototypes",)
    version = "1"
    edits = changes.EDITS
    general = changes.GENERAL

    class Params(base.Params):
        rows: int = Field(
            8, ge=1, le=20, description="How many prototypes are shown, those with the most points first."
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (one pass shows all)
        return 1

    @classmethod
    def canonical(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
        return changes.canonical(edits, about)

    @classmethod
    def told(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:  # noqa: ARG003 (they have no names)
        return changes.told(edits)

    def run(
        self, model: TorchPrototypeClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context
    ) -> base.Run:
        import torch

        for item in items:
            if not item.target.of_class:
                raise InvalidField(
                    f"{self.title} explains classes: prototypes add up to these and to nothing else.",
                    code="invalid_target",
                    given=item.target.json(),
                    hint="Name a class, or choose another method.",
                )
        found: list[list[Artifact]] = []
        for start, stop, rows in evaluate.chunks(len(items), ctx.chunk):
            some = items[start:stop]
            seen = model.look(evaluate.padded(torch.stack([i.x for i in some]), rows))
            yield base.Step(start / len(items))
            for n, item in enumerate(some):
                one = [t[n].cpu().numpy() for t in seen.found]
                match = matches.Match(
                    one[3],
                    one[0],
                    one[1].astype(np.uint16),
                    one[2].astype(np.uint8),
                    model.gate.numpy().astype(np.uint8),
                )
                _adds_up(model, match, one[4])
                made = matches.artifact(
                    model,
                    match,
                    match,
                    tokens=seen.tokens[n].cpu().numpy(),
                    picture=item.image,
                    target=item.target,
                    box=item.box,
                    rows=params.rows,
                )
                found.append([made])
                yield base.Step((start + n + 1) / len(items))
        return found

    def edit(
        self,
        model: TorchPrototypeClassifier,
        artifacts: Sequence[Artifact],
        edits: Sequence[Mapping[str, Any]],
        params: Params,
    ) -> base.Edited:
        import torch

        made = _edited(model, artifacts[0], edits, params)
        now = torch.from_numpy(matches.logits(model, matches.Match.stored(made))).float()
        target = base.Target.of(made.meta["target"])
        also = [c for c in (target.index, target.minus, changes.Changes.of(edits).against) if c is not None]
        return base.Edited([made], heads.predictions(model.head, model.unit, model.classes, now, TOP, also))

    def suggest(
        self,
        model: TorchPrototypeClassifier,
        artifacts: Sequence[Artifact],
        edits: Sequence[Mapping[str, Any]],
        params: Params,
    ) -> dict[str, Any]:
        """`flips`: for the best other classes the fewest prototypes without which each is ahead. `nearest`: pictures of the training patches
        nearest to each prototype that is shown."""
        made = _edited(model, artifacts[0], edits, params)
        match = matches.Match.stored(made)
        now, target = matches.logits(model, match), base.Target.of(made.meta["target"])
        rivals = [int(c) for c in np.argsort(-now, kind="stable") if c != target.index][:RIVALS]
        said = matches.text(made)
        return {
            "flips": [matches.flip(model, match, now, target.index, c) for c in rivals],
            "nearest": {
                str(row["prototype"]): [{**near, "picture": _picture(model, near["image"])} for near in row["nearest"]]
                for row in said["rows"]
            },
        }


def _edited(
    model: TorchPrototypeClassifier, stored: Artifact, edits: Sequence[Mapping[str, Any]], params: ProtoViT.Params
) -> Artifact:
    return matches.artifact(
        model,
        matches.Match.stored(stored, "found_"),
        matches.changed(model, stored, changes.Changes.of(edits)),
        tokens=stored.arrays["tokens"],
        picture=stored.arrays["picture"],
        target=base.Target.of(stored.meta["target"]),
        box=stored.meta["box"],
        rows=params.rows,
        edits=edits,
        kept=stored,
    )


def _adds_up(model: TorchPrototypeClassifier, match: matches.Match, logits: np.ndarray[Any, Any]) -> None:
    """Refuses a result whose points are not the logits. Values that are not finite are left to the check of the artifact."""
    sums = matches.logits(model, match)
    off = float(np.abs(sums - logits).max()) / max(1.0, float(np.abs(logits).max()))
    if np.isfinite(off) and off > SUM:
        raise ComputeFailed(
            f"The points of the prototypes do not add up to the logits: they are off by {off:.1e} of the largest.",
            code="not_additive",
            given=off,
            allowed=SUM,
        )


def _picture(model: TorchPrototypeClassifier, index: int) -> str | None:
    """A training picture as a data address; None where it is gone."""
    blob = model.source.jpeg(index)
    return None if blob is None else "data:image/jpeg;base64," + base64.b64encode(blob).decode()
