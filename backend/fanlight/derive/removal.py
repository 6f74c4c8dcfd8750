"""Taking prototypes out of a model for good, with the repair of its last layer; a bundle of its own comes of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fanlight import __version__
from fanlight.adapters import loader
from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier
from fanlight.derive.base import Data, Progress, figures
from fanlight.derive.looking import looked, opened, origin_of
from fanlight.derive.naming import begun, listed, made_before, prototypes
from fanlight.drawing.number import percent
from fanlight.drawing.trial import points
from fanlight.errors import InvalidField
from fanlight_models.prototypes import derived, repair


def remove(
    bundle: Path, gone: Sequence[int], data: Data, into: Path, tell: Progress = lambda *_: None, job: str = ""
) -> dict[str, Any]:
    """Writes the model of `bundle` without the prototypes `gone` as a new folder below `into`.

    Returns its story: `bundle` (the folder), `name`, `digest`, `parent`, `change`, `data`, and accuracy `before` and `after`, as lineage.json
    keeps it. The last layer is repaired on all readable pictures of `data`, labels or not; accuracy is measured on those that have one, of
    each half with the layer that was repaired on the other.
    Args: job: names the folder; one that is there was made by this job before it was broken off, and is the result.
    Errors: InvalidField, BadRequest.
    """
    model = opened(bundle)
    gone = prototypes(gone, len(model.own))
    _check(model, gone)
    every = sorted({*_removed(model), *gone})  # what went before stays out
    name, folder = begun(bundle, model.name, {"remove": gone}, into, job)
    if folder.exists():
        return made_before(folder, name)
    origin = origin_of(model)
    tell(0.02, "looking at the pictures")
    seen = looked(model, data, model.classes, tell)
    activation, labels, problems = seen.activation, seen.labels, seen.problems
    tell(0.9, "repairing the last layer")
    layer = model.prototypes.head.last_layer
    old = layer.weight.detach().clone()
    found = repair.without(old, activation, every)
    zeroed = old.clone()
    zeroed[:, gone] = 0
    said = {"old": (activation @ old.T).argmax(1), "zeroed": (activation @ zeroed.T).argmax(1)}
    said["new"] = _held_out(old, activation, every)
    predicted = {name: classes.numpy() for name, classes in said.items()}
    with torch.no_grad():
        layer.weight.copy_(found.weight)
    story: dict[str, Any] = {
        "change": {"remove": gone},
        "parent": origin,
        "data": {"name": data.name, "digest": data.digest, "pictures": len(activation), "unreadable": len(problems)},
        **figures(predicted["old"], predicted["new"], labels),
        "zeroed": figures(predicted["old"], predicted["zeroed"], labels)["after"],
        "rise": {"repaired": found.rise, "zeroed": found.plain, "whole": found.whole},
        "made": {"fanlight": __version__, "at": round(time.time())},
    }
    into.mkdir(parents=True, exist_ok=True)
    derived.write(folder, model.source, model.prototypes, name=name, story=story, section=section(story), removed=gone)
    tell(0.98, "reading it back")
    made = loader.load({"bundle": str(folder)})
    return {**story, "bundle": str(folder), "name": name, "digest": made.digest}


def _held_out(weight: torch.Tensor, activation: torch.Tensor, gone: Sequence[int]) -> torch.Tensor:
    """(n,) predictions after a repair that did not see the picture: of each half by the repair on the other one."""
    if len(activation) < 2:
        return (activation @ repair.without(weight, activation, gone).weight.T).argmax(1)
    found = torch.empty(len(activation), dtype=torch.int64)
    for half in (0, 1):
        layer = repair.without(weight, activation[1 - half :: 2], gone).weight
        found[half::2] = (activation[half::2] @ layer.T).argmax(1)
    return found


def _removed(model: TorchPrototypeClassifier) -> list[int]:
    return list(model.source.about.get("removed", ()))


def _check(model: TorchPrototypeClassifier, gone: Sequence[int]) -> None:
    """Errors: InvalidField for a prototype that is out already, or is the last of its class."""
    already = _removed(model)
    for j in gone:
        if j in already:
            raise InvalidField(
                f"Prototype {j} was taken out before.", code="unknown_prototype", given=j, allowed="another one"
            )
    own = model.own.numpy()
    for c in sorted({int(own[j]) for j in gone}):
        if not set(np.flatnonzero(own == c).tolist()) - {*gone, *already}:
            raise InvalidField(
                f"These are all prototypes of “{model.classes[c]}”: nothing would speak for it.",
                code="last_prototype",
                given=list(gone),
                hint="Leave one of them in.",
            )


def section(story: dict[str, Any]) -> str:
    """What the card says of it."""
    gone, data, change = story["change"]["remove"], story["data"], story["difference"]
    before, after, zeroed, moved = (story[k] for k in ("before", "after", "zeroed", "moved"))
    rows = [
        ("right before", _share(before)),
        ("right after, last layer repaired", _share(after)),
        ("right after, nothing repaired", _share(zeroed)),
        ("change", f"{points(change['value'])} points, 95 % interval {points(change['lo'])} to {points(change['hi'])}"),
        ("predictions that changed", f"{moved:,} of {data['pictures']:,}"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    many = len(gone) > 1
    return f"""## Without prototype{"s" if many else ""} {listed(gone)}

Made from “{story["parent"]["name"]}” (digest {story["parent"]["digest"][:16]}) by taking {"these" if many else "this"} out for good; the original
is untouched, and choosing it takes the change back. The last layer was repaired in closed form from the activations on
{data["pictures"]:,} pictures of “{data["name"]}”, without their labels; everything above this section is about the original.

| on these pictures, {before["n"]:,} of them labelled | |
|---|---|
{table}

Accuracy after the repair is measured on pictures that a repair did not see: of each half with the layer repaired on the other half; the
layer of this model is repaired on all. The interval is over pictures."""


def _share(p: dict[str, Any]) -> str:
    return f"{percent(p['value'], 1)} of {p['n']:,} (95 % interval {percent(p['lo'], 1)} to {percent(p['hi'], 1)})"
