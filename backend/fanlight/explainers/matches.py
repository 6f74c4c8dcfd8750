"""What prototypes found in a picture, after edits, and as an artifact: from stored arrays and the head of the model, never from the picture.

Everything but `remove_part` and `exclude_region` is linear in what was found; those two look again, over the stored tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fanlight.artifact import Artifact, canonical
from fanlight.explainers.base import Target
from fanlight.explainers.changes import Changes, excluded

if TYPE_CHECKING:
    from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier

Array = np.ndarray[Any, np.dtype[Any]]
NOWHERE, NEVER = 65535, 255
LISTED = 10
"""Classes whose weights are kept in an artifact, best first."""
SIDE = 160
"""Longer side of the training pictures in an artifact, pixels at most."""
NEAREST = 3


class Match(NamedTuple):
    """What m prototypes of K parts found: activation (m,), val, idx, order, slot (m, K) each, as the kind `prototypes` says."""

    activation: Array
    val: Array
    idx: Array
    order: Array
    slot: Array

    @classmethod
    def stored(cls, artifact: Artifact, prefix: str = "") -> Match:
        return cls(*(artifact.arrays[f"{prefix}{name}"] for name in cls._fields))


def changed(model: TorchPrototypeClassifier, artifact: Artifact, changes: Changes) -> Match:
    """What is left of what was found, after edits."""
    import torch

    found = Match.stored(artifact, "found_")
    tokens = torch.from_numpy(np.array(artifact.arrays["tokens"]))
    val, idx, order, slot = (np.array(a) for a in found[1:])
    free = None
    shut = excluded(changes.regions, artifact.meta)
    if shut:
        grid = torch.ones(tuple(artifact.meta["grid"]), dtype=torch.bool)
        for r, c in shut:
            grid[r, c] = False
        free = grid.reshape(-1)
        every = torch.arange(len(val))
        _put(model.again(tokens, every, free), every.numpy(), val, idx, order)
    for j, parts in changes.removed().items():
        which = torch.tensor([j])
        _put(model.again(tokens, which, free, parts), which.numpy(), val, idx, order)
    for (j, k), _ in changes.parts.items():
        slot[j, k] = 0
    activation = model.activation(torch.from_numpy(val), torch.from_numpy(slot).float()).numpy()
    same = np.all(slot == found.slot, 1) & np.all(val == found.val, 1)
    activation = np.where(same, found.activation, activation)  # bit for bit where nothing changed
    activation[changes.muted] = 0
    return Match(activation.astype(np.float32), val, idx, order, slot)


def _put(again: tuple[Any, Any, Any], which: Array, val: Array, idx: Array, order: Array) -> None:
    similarity, token, step = (t.numpy() for t in again)
    val[which] = similarity
    idx[which] = np.where(token < 0, NOWHERE, token).astype(np.uint16)
    order[which] = np.where(step < 0, NEVER, step).astype(np.uint8)


def logits(model: TorchPrototypeClassifier, match: Match) -> Array:
    """(C,) float64: the sums of points."""
    total: Array = model.weight.double().numpy() @ match.activation.astype(np.float64)
    return total


def towards(weight: Array, target: Target) -> Array:
    """(m,): weights for what is explained, from those of all classes, (C, m)."""
    chosen: Array = weight[target.index].astype(np.float64)
    return chosen if target.minus is None else chosen - weight[target.minus]


def artifact(
    model: TorchPrototypeClassifier,
    found: Match,
    match: Match,
    *,
    tokens: Array,
    picture: Array,
    target: Target,
    box: Sequence[float],
    rows: int,
    edits: Sequence[Mapping[str, Any]] = (),
    kept: Artifact | None = None,
) -> Artifact:
    """The artifact `prototypes` of what was found and what is left of it after canonical `edits`.

    Args: rows: prototypes to show. kept: an artifact of the same picture, whose sources are shown again however the bundle's pictures changed.
    """
    changes = Changes.of(edits)
    weight = model.weight.numpy()
    points = towards(weight, target) * found.activation
    main = [int(j) for j in np.argsort(-np.abs(points), kind="stable")[:rows]]
    main += [j for j in changes.touched if j not in main]
    # words of numbers that are not finite are never read: the arrays beside them are refused
    was, now = (np.nan_to_num(logits(model, m)) for m in (found, match))
    theirs = _theirs(model, match, changes.against, rows) if changes.against is not None else []
    shown = [*main, *(j for j in theirs if j not in main)]
    best = [int(c) for order in (-now, -was) for c in np.argsort(order, kind="stable")[:LISTED]]
    named = (target.index, target.minus, changes.against)
    classes = list(dict.fromkeys([c for c in named if c is not None] + best))
    known = {} if kept is None else {r["prototype"]: r for r in text(kept)["rows"]}
    words = {
        "classes": [
            {
                "index": c,
                "name": model.classes[c],
                "logit": float(now[c]),
                "was": float(was[c]),
                "share": float(_softmax(now)[c]),
                "share_was": float(_softmax(was)[c]),
            }
            for c in classes
        ],
        "main": main,
        "rows": [known.get(j) or _row(model, j) for j in shown],
        "flip": flip(model, match, now, target.index, _rival(now, target)),
        "contrast": None
        if changes.against is None
        else {**flip(model, match, now, target.index, changes.against), "rows": theirs},
        "raised": _raised(found, match, changes, towards(weight, target)),
        "quality": _quality(model),
        "source": dict(model.source.about),
    }
    meta = {
        "unit": "points",
        "box": list(box),
        "target": target.json(),
        "grid": list(model.grid),
        "parts": int(match.val.shape[1]),
        "radius": model.radius,
        "prototypes": len(match.activation),
        "classes": len(model.classes),
        "edits": list(edits),
    }
    arrays = {
        **{name: np.ascontiguousarray(a) for name, a in zip(Match._fields, match, strict=True)},
        **{f"found_{name}": np.ascontiguousarray(a) for name, a in zip(Match._fields, found, strict=True)},
        "own": model.own.numpy().astype(np.uint16),
        "weight": np.ascontiguousarray(weight[classes]),
        "tokens": np.ascontiguousarray(tokens, np.float32),
        "row": np.array(shown, np.int32),
        "source": _sources(model, shown, picture, kept),
        "picture": np.ascontiguousarray(picture),
        "text": np.frombuffer(canonical(words), np.uint8).copy(),
    }
    return Artifact("prototypes", "prototypes", arrays, meta)


def _softmax(z: Array) -> Array:
    e = np.exp(z - z.max())
    share: Array = e / e.sum()
    return share


def text(artifact: Artifact) -> dict[str, Any]:
    """Names and sources of an artifact."""
    found: dict[str, Any] = json.loads(artifact.arrays["text"].tobytes())
    return found


def _theirs(model: TorchPrototypeClassifier, match: Match, against: int, rows: int) -> list[int]:
    """The prototypes of a class, those that add most to it first."""
    mine = np.flatnonzero(model.own.numpy() == against)
    points = model.weight[against].numpy()[mine] * match.activation[mine]
    return [int(j) for j in mine[np.argsort(-points, kind="stable")][:rows]]


def _rival(now: Array, target: Target) -> int:
    """The best class beside the explained one."""
    if target.minus is not None:
        return target.minus
    others = np.array(now)
    others[target.index] = -np.inf
    return int(others.argmax())


def flip(model: TorchPrototypeClassifier, match: Match, now: Array, first: int, second: int) -> dict[str, Any]:
    """What it would take for `second` to be ahead of `first`: exact, because the margin is a sum."""
    import torch

    from fanlight_models.prototypes.algebra import contrast

    if first == second:
        return {"class": second, "name": model.classes[second], "margin": 0.0, "mute": [], "after": 0.0}
    a, weight = torch.from_numpy(np.array(match.activation)).double(), model.weight.double()
    found = contrast(a, weight, model.own, match.val.shape[1], first, second)
    left = None if found.flip is None else float(found.margin - found.difference[found.flip].sum())
    return {
        "class": second,
        "name": model.classes[second],
        "margin": float(now[first] - now[second]),
        "mute": found.flip,
        "after": left,
    }


def _raised(found: Match, match: Match, changes: Changes, weight: Array) -> list[dict[str, Any]]:
    """Parts whose leaving out raised their prototype: the rescaling of what is left does that to a part that fits badly."""
    said = []
    for j in dict.fromkeys(j for j, _ in changes.parts):
        before, after = float(found.activation[j]), float(match.activation[j])
        if after > before + 1e-6 and j not in changes.muted:
            parts = [k for (i, k) in changes.parts if i == j]
            said.append(
                {
                    "prototype": j,
                    "parts": parts,
                    "before": before,
                    "after": after,
                    "points": float(weight[j] * (after - before)),
                }
            )
    return said


def _row(model: TorchPrototypeClassifier, j: int) -> dict[str, Any]:
    """Where a prototype comes from, and what is known of it."""
    held = model.source
    own = int(model.own[j])
    known: dict[str, Any] = {"prototype": j, "class": own, "class_name": model.classes[own], "flags": _flags(model, j)}
    if held.sources is None:
        return {**known, "source": {"status": "unavailable"}, "nearest": []}
    s = held.sources[j]
    picture = held.pictures.get(s.image) if s.image is not None else None
    there = s.image is not None and model.source.jpeg(s.image) is not None
    lost = s.image is None and held.about.get("recovered")
    source = {
        "status": "unavailable" if lost else "none" if s.image is None else "projected" if there else "unavailable",
        "image": s.image,
        "name": picture.name if picture else "",
        "sha256": picture.sha256 if picture else None,
        "split": held.about.get("split"),
        "token": list(s.token),
        "cosine": list(s.cosine),
        "movement": s.movement,
        "self_activation": s.self_activation,
    }
    return {**known, "source": source, "nearest": _nearest(model, j)}


def _nearest(model: TorchPrototypeClassifier, j: int) -> list[dict[str, Any]]:
    """The training pictures that it is most active on, apart from its own source."""
    held = model.source
    if held.nearest is None or held.sources is None:
        return []
    told: list[dict[str, Any]] = []
    for n, image in enumerate(held.nearest.image[j].tolist()):
        if image < 0 or image == held.sources[j].image or len(told) == NEAREST:
            continue
        picture = held.pictures.get(image)
        told.append(
            {
                "image": image,
                "name": picture.name if picture else "",
                "class_name": model.classes[picture.label] if picture else "",
                "activation": float(held.nearest.activation[j, n]),
                "token": held.nearest.token[j, n].tolist(),
            }
        )
    return told


def _flags(model: TorchPrototypeClassifier, j: int) -> list[str]:
    held, said = model.source, []
    parts = model.gate.shape[1]
    quality = held.quality
    if j in held.about.get("removed", ()):
        return ["removed"]
    if held.sources is not None and not (held.about.get("recovered") and held.sources[j].image is None):
        s = held.sources[j]
        if s.image is not None and s.self_activation < 0.99 * parts:
            said.append("weak_self")
        if s.duplicate_of is not None:
            said.append(f"duplicate_of:{s.duplicate_of}")
        if s.image is None:
            said.append("empty")
    if j in quality.get("dead", ()):
        said.append("dead")
    if int(model.weight[:, j].abs().argmax()) != int(model.own[j]):
        said.append("largest_weight_other_class")
    return said


def _quality(model: TorchPrototypeClassifier) -> dict[str, Any]:
    """What was measured of the prototypes of the model, without its lists."""
    return {
        k: len(v) if isinstance(v, list) and k != "open_parts" else v
        for k, v in model.source.quality.items()
        if k != "purity"
    }


def _sources(model: TorchPrototypeClassifier, shown: Sequence[int], picture: Array, kept: Artifact | None) -> Array:
    """(R, h, w, 3) uint8: the training pictures of the prototypes that are shown; black where one is gone, and `text` says so."""
    from PIL import Image

    height, width = picture.shape[:2]
    scale = min(1.0, SIDE / max(height, width))
    h, w = max(1, round(height * scale)), max(1, round(width * scale))
    out = np.zeros((len(shown), h, w, 3), np.uint8)
    held = {} if kept is None else dict(zip(kept.arrays["row"].tolist(), kept.arrays["source"], strict=True))
    for row, j in zip(out, shown, strict=True):
        if j in held:
            row[:] = held[j]
            continue
        sources = model.source.sources
        found = model.picture(sources[j].image) if sources is not None else None
        if found is not None:
            row[:] = np.asarray(Image.fromarray(found).resize((w, h), Image.Resampling.LANCZOS))
    return out
