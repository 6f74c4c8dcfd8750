"""Artifacts: one typed result of an explanation. Arrays as safetensors, meaning as JSON in the same file, named by its digest.

The kinds are a closed, versioned set. An artifact can be redrawn without the model: everything a renderer needs is in it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from safetensors.numpy import load as load_arrays, save as save_arrays

FORMAT = 1
MAX_HEADER = 1 << 20  # a header of megabytes of spaces parses for a long time; ours are below 10 KiB

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Kind:
    """One artifact kind: its arrays (name -> number of dimensions) and the metadata keys it must carry."""

    name: str
    arrays: Mapping[str, int]
    meta: tuple[str, ...]
    doc: str


KINDS: dict[str, Kind] = {
    k.name: k
    for k in (
        # `value` (H, W) float32 on the grid of the model's input; `box` = x0, y0, x1, y1 of that input in pixels of the stored picture.
        Kind("image-map", {"value": 2}, ("unit", "signed", "box"), "A value per pixel of the model's input."),
        # `label` (H, W) int32: region of each pixel of the model's input, 0..R-1; `value` (R,) for the target;
        # `all` (R, C) for every class, so that another target can be shown without asking the model.
        Kind(
            "region-scores",
            {"label": 2, "value": 1, "all": 2},
            ("unit", "signed", "box", "target"),
            "A value per region of the picture, for every class.",
        ),
        # `x` (T,), `y` (S, T): series named by meta["series"]; `lo`, `hi` (S, T) their band (equal to y where there is none).
        Kind("curves", {"x": 1, "y": 2, "lo": 2, "hi": 2}, ("x_label", "y_label", "series"), "Curves with bands."),
        # What a concept bottleneck says of a picture, K concepts, C classes. `mean` (K,), `lower` (K, K) and `context` (D,): the reading, from which
        # every answer is computed again (the last two empty where there are none). `before`, `after` (3, K): P(concept) and the ends of its range,
        # without and with the answers; `classes_before`, `classes_after` (2, C): P(class) and its standard error. `weights` (C, K) of a linear head,
        # else (0, K); `base` (K,): how frequent each concept is. `effects` (4, K): what yes and no would do to the target's logit, directly and
        # through other concepts, else (0, K). `case`, `distance` (n,): the nearest reference cases.
        Kind(
            "concepts",
            {
                "mean": 1,
                "lower": 2,
                "context": 1,
                "before": 2,
                "after": 2,
                "classes_before": 2,
                "classes_after": 2,
                "weights": 2,
                "base": 1,
                "effects": 2,
                "case": 1,
                "distance": 1,
            },
            ("unit", "box", "target", "concepts", "classes", "exclusive", "answers", "against", "samples", "cases"),
            "Concepts before and after a person's answers, and the classes that follow.",
        ),
        # What m prototypes of K parts found in a picture of N tokens; `found_*`: as the network found it, without: after `meta["edits"]`.
        # `activation` (m,), -K..K; `val` (m, K) cosines; `idx` (m, K) uint16 tokens, row by row; `order` (m, K) uint8, the step of the match; `slot`
        # (m, K) uint8, whether the part counts. Where a part was taken out of the match: val 0, idx 65535, order 255. `own` (m,) uint16: class.
        # `weight` (S, m) float32: last layer for the classes that `text` lists. `tokens` (N, D) float32 of length 1. `row` (R,) int32: prototypes
        # that are shown, `source` (R, h, w, 3) uint8 the training pictures that they come from, `picture` (H, W, 3) uint8 what the model saw.
        # `text`: names and sources as canonical JSON in UTF-8.
        Kind(
            "prototypes",
            {
                **{name: 1 for name in ("activation", "found_activation", "own", "row", "text")},
                **{name: 2 for name in ("val", "idx", "order", "slot", "weight", "tokens")},
                **{f"found_{name}": 2 for name in ("val", "idx", "order", "slot")},
                "picture": 3,
                "source": 4,
            },
            ("unit", "box", "target", "grid", "parts", "radius", "prototypes", "classes", "edits"),
            "What each prototype found in the picture, and what that adds to the classes.",
        ),
        # What words of a prompt say about a picture, from a model that draws. M contrasts of two prompts, P pairs of log-SNRs, (h, w) latent pixels.
        # `terms` (M, P, h, w) float32: orthogonal information, nats per latent pixel, whose mean over P is the map; `signed` (M, P) float64: of the
        # picture, signed. `alpha` (P,): log-SNRs, rising; a term over `weight` (P,) is the integrand. `floor` (h, w): of a word that should say
        # nothing. `attention` (A, h, w): of each word, A 0 where there is none. `picture` (H, W, 3) uint8; `changed` the same after the prompt was
        # changed, `difference` (h, w) how far its pixels moved; (0, 0, 3) and (0, 0) where it was not. `meta["singles"]`: contrast of each word;
        # `meta["pairs"]`: [i, j, of i, of j, of both].
        Kind(
            "words",
            {
                "terms": 4,
                "signed": 2,
                "alpha": 1,
                "weight": 1,
                "floor": 2,
                "attention": 3,
                "picture": 3,
                "changed": 3,
                "difference": 2,
            },
            ("unit", "target", "prompt", "words", "singles", "pairs", "pair", "rule", "chances", "band", "edits"),
            "What words of a prompt say about each place of a picture.",
        ),
    )
}


@dataclass(frozen=True)
class Artifact:
    """One typed result.

    Args:
        name: unique within its explanation, kebab-case ("map", "regions", "trust-curves").
        kind: a key of KINDS.
        arrays: numpy arrays, finite; shapes as the kind says.
        meta: JSON-able; units, baseline, box, ...
    """

    name: str
    kind: str
    arrays: Mapping[str, Array]
    meta: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> Artifact:
        """Returns itself, or raises ValueError where it does not fit its kind or holds a number that is not finite."""
        kind = KINDS.get(self.kind)
        if kind is None:
            raise ValueError(f"unknown artifact kind {self.kind!r}; known: {', '.join(KINDS)}")
        if set(self.arrays) != set(kind.arrays):
            raise ValueError(f"{self.kind} has arrays {sorted(kind.arrays)}, got {sorted(self.arrays)}")
        for name, ndim in kind.arrays.items():
            a = self.arrays[name]
            if a.ndim != ndim:
                raise ValueError(f"{self.kind}.{name} has {ndim} dimensions, got shape {a.shape}")
            if a.dtype.kind == "f" and not np.isfinite(a).all():
                raise ValueError(f"{self.kind}.{name} holds values that are not finite")
        missing = [m for m in kind.meta if m not in self.meta]
        if missing:
            raise ValueError(f"{self.kind} lacks metadata {missing}")
        return self

    def to_bytes(self) -> bytes:
        """Deterministic safetensors bytes: one metadata key, because a map of several has no fixed order in the format."""
        head = {"format": FORMAT, "name": self.name, "kind": self.kind, "meta": self.meta}
        arrays = {k: np.ascontiguousarray(v) for k, v in sorted(self.arrays.items())}
        return save_arrays(arrays, {"fanlight": canonical(head).decode()})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Artifact:
        size = int.from_bytes(blob[:8], "little")
        if size > min(MAX_HEADER, len(blob)):
            raise ValueError("not a Fanlight artifact: header too large")
        head = json.loads(json.loads(blob[8 : 8 + size]).get("__metadata__", {}).get("fanlight", "null"))
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError("not a Fanlight artifact of a known format")
        return cls(head["name"], head["kind"], load_arrays(blob), head["meta"])


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8; refuses NaN and infinity; -0.0 becomes 0; equal numbers have one spelling."""
    return orjson.dumps(_normal(value), option=orjson.OPT_SORT_KEYS)


def _normal(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no canonical form")
        return int(value) if value == int(value) and abs(value) < 2**53 else value
    if isinstance(value, np.generic):
        return _normal(value.item())
    if isinstance(value, Mapping):
        return {str(k): _normal(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_normal(v) for v in value]
    raise TypeError(f"{type(value).__name__} has no canonical form")


def digest(blob: bytes) -> str:
    """sha256 as 64 hex digits: the name of a blob."""
    return hashlib.sha256(blob).hexdigest()
