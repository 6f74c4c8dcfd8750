"""The content key of an explanation: equal keys mean equal computations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fanlight.artifact import canonical, digest

NUMERICS = "f32/deterministic"
"""The class of numerics that is asked for; a pool of workers offers exactly one. The device is provenance, not part of the key."""

TOP = {"top": 1}
"""Stands for an omitted target until the prediction is known; docs/decisions/0002."""


def key(
    *,
    model: str,
    input: str,
    explainer: str,
    version: str,
    params: Mapping[str, Any],
    target: Mapping[str, Any] | None,
    seed: int,
    parent: str | None = None,
    edits: Sequence[Mapping[str, Any]] = (),
) -> str:
    """sha256 of canonical JSON. `model` and `input` are digests; `params` have their defaults filled."""
    parts: dict[str, Any] = {
        "model": model,
        "input": input,
        "explainer": explainer,
        "version": version,
        "params": params,
        "target": target if target is not None else TOP,
        "seed": seed,
        "numerics": NUMERICS,
    }
    if edits:
        parts |= {"parent": parent, "edits": list(edits)}
    return digest(canonical(parts))
