"""Whether maps find what changed the answer: drawn stamps on photographs, and how much of each map lies on the stamp.

The stamps are those of Tux Paint (Debian's tuxpaint-stamps-default); their alpha channel is the mask. A composite is used where the class that the
model gives is not that of the photograph, nor that of the photograph with the stamp's outline in plain grey: so the evidence for it is on the stamp.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from fanlight.bench import _explained, _pictures
from fanlight.bench._machine import machine, today, versions
from fanlight.cli.output import say
from fanlight.decoding import decode
from fanlight.errors import NotFound
from fanlight.explainers.registry import find, registry

if TYPE_CHECKING:
    from fanlight.adapters.image_classifier import TorchImageClassifier

STAMPS = Path("/usr/share/tuxpaint/stamps")
PACKAGE = "tuxpaint-stamps-default"
COUNT = 30
SAMPLES = 256
SHARE = (0.35, 0.6)  # of the shorter side of what the model sees, the longer side of a stamp
TRIES = 60  # per composite that is wanted
GREY = (128, 128, 128, 255)
PACKAGES = ("fanlight", "torch", "numpy", "pillow", "scikit-image")
HEAD = (
    "| method | share of the map on the stamp | over the stamp's share of the picture | in words |\n|---|---|---|---|\n"
)
Floats = np.ndarray[Any, np.dtype[np.float64]]


class Composite(NamedTuple):
    """Args: pixels: (h, w, 3) uint8; mask: (H, W) bool, the stamp in the model's input; stamp: its name."""

    pixels: np.ndarray[Any, np.dtype[np.uint8]]
    mask: np.ndarray[Any, np.dtype[np.bool_]]
    stamp: str


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --count N (composites), --stamps FOLDER, --methods NAME ..., --samples N (methods that draw samples draw at most N)."""
    parser = argparse.ArgumentParser(prog="fanlight bench stamps --", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--stamps", type=Path, default=STAMPS)
    parser.add_argument("--methods", nargs="+", metavar="NAME")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    chosen = parser.parse_args(options)
    import torch

    torch.set_num_threads(1)
    model = _explained.default_model()
    given, tried = chosen_composites(model, stamps(chosen.stamps), chosen.count)
    say(f"{len(given)} composites of {tried} tried.")
    told: dict[str, Any] = {}
    unfit: dict[str, str] = {}
    for method in [find(n) for n in chosen.methods] if chosen.methods else list(registry().values()):
        params = _explained.thrifty(method, chosen.samples, model)
        reason = _explained.unfit(method, params, model)
        if reason is not None:
            unfit[method.name] = reason
            continue
        shares = np.array(
            [
                inside(_map(_explained.explained(method, params, model, _explained.item(model, c.pixels))), c.mask)
                for c in given
            ]
        )
        changed = {k: v for k, v in params if v != getattr(method.Params(), k)}
        told[method.name] = {"title": method.title, "changed": changed, **compared(shares, given)}
        say(f"{method.name}: {told[method.name]['share']:.2f}, {told[method.name]['words']}")
    area = np.array([c.mask.mean() for c in given])
    about = {"benchmark": "stamps", "date": today(), "machine": machine(), "versions": versions(PACKAGES)}
    said = {"model": model.name, "composites": len(given), "tried": tried, "samples": chosen.samples}
    return {**about, "options": said, "area": float(area.mean()), "methods": told, "unfit": unfit}


def stamps(folder: Path) -> list[Path]:
    """Pictures with an alpha channel that is not all there. Errors: NotFound, with what to install."""
    found = []
    for path in sorted(folder.rglob("*.png")) if folder.is_dir() else []:
        with Image.open(path) as image:
            if image.mode == "RGBA" and min(image.size) >= 48 and image.getchannel("A").getextrema()[0] == 0:
                found.append(path)
    if not found:
        raise NotFound(
            f"There are no stamps in {folder}.",
            code="no_stamps",
            hint=f"On Debian: apt-get install {PACKAGE}. Elsewhere name a folder of PNG files with alpha: --stamps FOLDER",
        )
    return found


def chosen_composites(
    model: TorchImageClassifier, found: Sequence[Path], count: int, seed: int = 0
) -> tuple[list[Composite], int]:
    """Composites whose class is due to the stamp, of different stamps; and how many were tried."""
    rng = np.random.default_rng(seed)
    photographs = _pictures.photographs(seed)
    kept: list[Composite] = []
    tried = 0
    for path in (found[n] for n in rng.permutation(len(found))):
        if len(kept) == count or tried == TRIES * count:
            break
        tried += 1
        _, blob = next(photographs)
        photo = decode(blob, max_bytes=1 << 26, max_pixels=1 << 26).pixels
        with Image.open(path) as image:
            stamp = image.convert("RGBA")
        whole, grey, mask = stamped(model, photo, stamp, rng)
        before, after, outline = (first(model, p) for p in (photo, whole, grey))
        if after not in (before, outline) and 0.02 < mask.mean() < 0.5:
            kept.append(Composite(whole, mask, path.stem))
    return kept, tried


def stamped(
    model: TorchImageClassifier, photo: np.ndarray[Any, Any], stamp: Image.Image, rng: np.random.Generator
) -> tuple[Any, Any, Any]:
    """The photograph with the stamp somewhere in what the model sees, with its outline in grey instead, and the mask, (H, W) bool."""
    left, top, right, bottom = model.view(photo.shape[1], photo.shape[0])
    side = rng.uniform(*SHARE) * min(right - left, bottom - top)
    scale = side / max(stamp.size)
    small = stamp.resize(
        (max(1, round(stamp.width * scale)), max(1, round(stamp.height * scale))), Image.Resampling.LANCZOS
    )
    at = (round(rng.uniform(left, right - small.width)), round(rng.uniform(top, bottom - small.height)))
    alpha = small.getchannel("A")
    made = []
    for base, ink in ((photo, small), (photo, Image.new("RGBA", small.size, GREY)), (np.zeros_like(photo), None)):
        image = Image.fromarray(base)
        image.paste(Image.new("RGB", small.size, "white") if ink is None else ink.convert("RGB"), at, alpha)
        made.append(np.asarray(image))
    return made[0], made[1], model.pixels(made[2])[..., 0] > 127


def first(model: TorchImageClassifier, pixels: np.ndarray[Any, Any]) -> int:
    return _explained.item(model, pixels).target.index


def _map(artifacts: Sequence[Any]) -> Floats:
    return np.asarray(next(a for a in artifacts if a.kind == "image-map").arrays["value"], dtype=np.float64)


def inside(value: Floats, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    """The share of a map's positive part on the mask; NaN where nothing is positive."""
    positive = np.maximum(value, 0)
    total = positive.sum()
    return float(positive[mask].sum() / total) if total > 0 else float("nan")


def compared(shares: Floats, given: Sequence[Composite]) -> dict[str, Any]:
    """Mean share with its 95 % bootstrap interval over composites, the same over the stamp's own share of the picture (1 is chance)."""
    there = np.isfinite(shares)
    values, area = shares[there], np.array([c.mask.mean() for c in given])[there]
    ratio = values / area
    (lo, hi), (least, most) = _explained.interval(values), _explained.interval(ratio)
    return {
        "n": int(there.sum()),
        "empty": int((~there).sum()),
        "share": float(values.mean()),
        "lo": lo,
        "hi": hi,
        "ratio": float(ratio.mean()),
        "ratio_lo": least,
        "ratio_hi": most,
        "words": "**less than chance**"
        if most < 1
        else "**not told apart from chance**"
        if least <= 1
        else "more than chance",
    }


def table(run: Mapping[str, Any]) -> str:
    """Markdown, most of the map on the stamp first."""
    m, o = run["machine"], run["options"]
    packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    about = (
        f"{run['date']}. {o['model']}; {o['composites']} composites of {o['tried']} tried; the stamp covers {run['area']:.1%} of what the model "
        f"sees, on average: that is chance. Methods that draw samples drew at most {o['samples']}. {m['cpu']}. {packages}.\n\n"
    )
    return about + HEAD + "".join(_rows(run["methods"]))


def _rows(methods: Mapping[str, Any]) -> Iterator[str]:
    for name, f in sorted(methods.items(), key=lambda m: -m[1]["share"]):
        changed = "".join(f", {v} {k}" for k, v in f["changed"].items())
        empty = f"; {f['empty']} maps empty" if f["empty"] else ""
        share = f"{f['share']:.2f} ({f['lo']:.2f} to {f['hi']:.2f})"
        ratio = f"{f['ratio']:.2f} ({f['ratio_lo']:.2f} to {f['ratio_hi']:.2f})"
        yield f"| [{f['title']}](methods/{name}.md){changed} | {share} | {ratio} | {f['words']}{empty} |\n"
