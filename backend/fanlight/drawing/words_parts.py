"""What the detail of an artifact `words` is made of: single words, pairs, attention, the noise floor, and what moved after a redrawing."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from fanlight.drawing import colour
from fanlight.drawing.information import Array, Read, atoms


def painted(name: str, values: Array, top: float, cmap: str | None) -> Image.Image:
    """A map in colours: synergy diverges about 0, all others start there."""
    lo, chosen = (-top, "diverging") if name == "synergy" else (0.0, cmap or "sequential")
    return Image.fromarray(colour.colours(values, lo, top, chosen))


def single(read: Read, n: int) -> dict[str, Any]:
    """A measured word by itself: given all others in context, else against nothing."""
    m = read.meta["singles"][n]
    value, error = read.signed(m)
    values = read.map(m)
    return {
        "word": n,
        "value": value,
        "error": error,
        "sum": float(values.sum()),
        "values": rows(values),
        "errors": rows(read.error(m)),
    }


def pair_sums(read: Read, meta: Mapping[str, Any], pair: list[int]) -> dict[str, Any]:
    """Sums of the atoms of a pair of measured words. Probabilities that are given for all words count in all pairs; given for the
    shown pair, they are equal in others."""
    i, j = pair[:2]
    chances, every = meta["chances"], meta.get("probabilities")
    if every is not None:
        chances = [every[i], every[j]]
    elif chances is not None:
        chances = {(i, j): chances, (j, i): chances[::-1]}.get(tuple(meta["pair"]))
    one, other, both = (read.map(m) for m in pair[2:])
    found = atoms(one, other, both, meta["rule"], chances)
    sums = [float(m.sum()) for m in found]
    return {"pair": [i, j], "redundant": sums[0], "unique": sums[1:3], "synergy": sums[3]}


def attention(read: Read) -> list[dict[str, Any]]:
    """Of every measured word where the network looked for it, from the passes that saw the whole prompt: mean over heads and layers, 0 to 1. All on
    the scale of the largest. Empty where the model has no cross-attention, or was never asked with the whole prompt."""
    looks = read.arrays["attention"].astype(np.float64)
    top = float(looks.max()) if looks.size else 1.0
    return [
        {
            "word": n,
            "title": read.meta["words"][n][2],
            "top": top,
            "values": rows(values),
            "image": png(painted("a", values, top or 1.0, None)),
        }
        for n, values in enumerate(looks)
    ]


def floor(read: Read) -> dict[str, Any] | None:
    """The map of a word that says nothing, in nats per latent pixel on the scale of the other maps: what of them may be the network's jitter.
    `share`: its sum over that of both words. None where the model does not know the word."""
    if not read.meta["floored"]:
        return None
    values, both = read.arrays["floor"].astype(np.float64), float(read.maps["both"].sum())
    return {
        "sum": float(values.sum()),
        "share": float(values.sum()) / both if both > 0 else None,
        "values": rows(values),
        "image": png(painted("a", values, read.top, None)),
    }


def moved(read: Read) -> dict[str, Any] | None:
    """How far the pixels moved, beside what was foretold; None where nothing was drawn again.

    Foretold: the sum of the maps of the words that were changed, each given all others, where they were measured; `correlation` is Pearson's with it,
    `attention` the same with the attention of these words, `correlations` with each map that is shown.
    """
    if read.meta["redrawn"] is None:
        return None
    there = read.arrays["difference"].astype(np.float64)
    changed = read.meta["redrawn_words"]
    foretold = np.sum([read.map(read.meta["singles"][n]) for n in changed], axis=0) if changed else None
    looks = read.arrays["attention"]
    return {
        "title": read.meta["redrawn_as"],
        "words": changed,
        "sum": float(there.sum()),
        "values": rows(there),
        "image": png(painted("a", there, float(there.max()) or 1.0, None)),
        "foretold": None if foretold is None else rows(foretold),
        "correlation": None if foretold is None else correlated(there, foretold),
        "attention": correlated(there, looks[changed].astype(np.float64).sum(0)) if changed and len(looks) else None,
        "correlations": {name: correlated(there, values) for name, values in read.maps.items()},
    }


def correlated(one: Array, other: Array) -> float | None:
    """Pearson's correlation over the places of two maps; None where one of them is the same everywhere."""
    a, b = (m.ravel() - m.mean() for m in (one, other))
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 1e-12 * one.size else None


def rows(values: Array) -> list[list[float]]:
    return [[float(f"{v:.4g}") for v in row] for row in values]


def png(image: Image.Image) -> str:
    out = io.BytesIO()
    image.save(out, "PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
