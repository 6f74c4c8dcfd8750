"""What every method scores on the field guide, where the truth is known: its map beside the redrawn truth, scene by scene.

`--write` keeps the scores in the file that ships with Fanlight (`fanlight.quality.world`), from which pages and shares say them.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fanlight import bundles, wire
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._offline import Lent
from fanlight.cli.output import say
from fanlight.drawing.world import number
from fanlight.errors import FanlightError, InvalidField, NotFound
from fanlight.explainers.base import Explainer, Item, Target, absent
from fanlight.explainers.registry import find, registry
from fanlight.quality import world
from fanlight_models.worlds import fieldguide
from fanlight_models.worlds.fieldguide import measures

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import TorchImageClassifier

WORLD = "field-guide"
SCENES = 16
CHUNK = 8  # rows per pass, as in the server's worker
UNITS = {
    "part ranking": "rank correlation",
    "inside the bird": "share of the positive part",
    "inside what matters": "share of the positive part",
    "on the background": "share of the positive part",
    "deletion": "share of what the bird adds",
    "preservation": "share of what the bird adds",
}
PACKAGES = ("fanlight", "torch", "numpy", "pillow")
Pixels = NDArray[np.uint8]


class Scores(dict[str, Any]):
    """What each method scored, by name; as text a line each."""

    def __str__(self) -> str:
        found = {k: world.Entry.model_validate(v).measures.get(world.HEADLINE) for k, v in self.items()}
        return "\n".join(f"{name}: {line(said)}" for name, said in found.items())


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --scenes N (of the test split, from the first), --methods NAME ..., --model BUNDLE (a folder), --threads N, --write (keep the
    scores in the shipped file; with --methods beside those that are there)."""
    parser = argparse.ArgumentParser(prog="fanlight bench world --", description=__doc__)
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--methods", nargs="+", metavar="NAME")
    parser.add_argument("--model", type=Path, help=f"folder of a bundle; default: the shipped {WORLD}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(options)
    if not 1 <= chosen.scenes <= fieldguide.SPLITS["test"]:
        parser.error(f"--scenes: 1 to {fieldguide.SPLITS['test']}")
    methods = [find(name) for name in chosen.methods] if chosen.methods else list(registry().values())
    about = {"benchmark": "world", "machine": machine()}
    began = time.monotonic()
    found = scored(chosen.model or default(), methods, chosen.scenes, threads=chosen.threads)
    if chosen.write:
        found = merged(found, world.read(world.FILE)) if chosen.methods else found
        world.FILE.write_text(found.model_dump_json(indent=1) + "\n")
        say(f"Written to {world.FILE.name}.")
    told = found.model_dump(mode="json")
    return {**about, "seconds": round(time.monotonic() - began), **told, "explainers": Scores(told["explainers"])}


def default() -> Path:
    """The bundle of the field guide that ships with Fanlight."""
    path = next((p for p in bundles.shipped() if p.name == WORLD), None)
    if path is None:
        raise NotFound(
            f"The bundle {WORLD} is not installed here.", code="unknown_model", hint="Name one with --model."
        )
    return path


def scored(place: Path, methods: Sequence[type[Explainer]], scenes: int, *, threads: int = 1) -> world.Record:
    """Every method that fits the model, on the first scenes of the test split, each for the class that the model gives first."""
    import torch

    from fanlight.adapters import loader

    torch.set_num_threads(threads)
    model = loader.load(loader.source(place))
    done: dict[str, world.Entry] = {}
    reasons: dict[str, str] = {}
    given = fieldguide.split("test", scenes)
    predict = remembered(model)
    size = model.size[0]
    targets = [int(predict(fieldguide.draw(s, size).image[None])[0].argmax()) for s in given]
    for n, method in enumerate(methods, 1):
        reason = unfit(method, model)
        if reason is None:
            began = time.monotonic()
            try:
                found = measures.judge(explains(method, model), predict, given, targets, size=size)
            except FanlightError as e:
                reason = str(e)
            else:
                done[method.name] = world.Entry(version=method.version, measures=wired(found))
                said = done[method.name].measures.get(world.HEADLINE)
                say(f"{n}/{len(methods)} {method.name}, {time.monotonic() - began:.0f} s: {line(said)}")
        if reason is not None:
            reasons[method.name] = reason
            say(f"{n}/{len(methods)} {method.name}: {reason}")
    return world.Record(
        world=WORLD,
        world_version=fieldguide.VERSION,
        model=model.name,
        model_digest=model.digest,
        scenes=scenes,
        date=today(),
        versions=versions(PACKAGES),
        explainers=done,
        unavailable=reasons,
    )


def line(found: wire.Measurement | None) -> str:
    if found is None:
        return "no order of the parts"
    return f"{number(found.value)} ({number(found.lo)} to {number(found.hi)}), random {number(found.floor)}, best {number(found.ceiling)}"


def merged(new: world.Record, old: world.Record | None) -> world.Record:
    """`new` with what `old` says of the other methods. Errors: InvalidField where they are not of the same model, world and scenes."""
    if old is None:
        return new
    same = ("world", "world_version", "model_digest", "scenes")
    if any(getattr(new, k) != getattr(old, k) for k in same):
        raise InvalidField(
            "The scores that are kept are of another model, world or number of scenes.",
            code="other_world",
            given={k: getattr(new, k) for k in same},
            allowed={k: getattr(old, k) for k in same},
            hint="Measure all methods: leave --methods out.",
        )
    fresh = {*new.explainers, *new.unavailable}
    return new.model_copy(
        update={
            "explainers": {k: v for k, v in old.explainers.items() if k not in fresh} | new.explainers,
            "unavailable": {k: v for k, v in old.unavailable.items() if k not in fresh} | new.unavailable,
        }
    )


def unfit(method: type[Explainer], model: TorchImageClassifier) -> str | None:
    """Why a method cannot be measured with a model, as a sentence; None where it can."""
    from fanlight.adapters.base import missing

    if method.accepts != model.task:
        return f"It explains models of the task {method.accepts}; this one is of the task {model.task}."
    if "image-map" not in method.returns:
        return "It returns no map over the pixels."
    reason = missing(method.needs, model.capabilities) or absent(method)
    if reason is None:
        try:
            method.check(method.Params(), model.size)
        except InvalidField as e:
            return e.message
    return reason


def remembered(model: TorchImageClassifier) -> Callable[[Pixels], NDArray[np.float64]]:
    """(n, size, size, 3) -> (n, classes). Every method is judged on the same redraws, so that each is asked about once."""
    import torch

    known: dict[bytes, NDArray[np.float64]] = {}

    def predict(images: Pixels) -> NDArray[np.float64]:
        keys = [hashlib.sha256(image.tobytes()).digest() for image in images]
        new = list({k: n for n, k in enumerate(keys) if k not in known}.values())
        if new:
            with torch.inference_mode():
                rows = model.logits(torch.stack([model.prepare(images[n]) for n in new])).double().cpu().numpy()
            known.update(zip((keys[n] for n in new), rows, strict=True))
        return np.stack([known[k] for k in keys])

    return predict


def explains(
    method: type[Explainer], model: TorchImageClassifier, device: torch.device | None = None
) -> measures.Explain:
    """The method at its defaults as a function of the picture, for the class that the model gives first; seeds are drawn from the picture."""
    import torch

    params, lent = method.Params(), Lent(device or torch.device("cpu"), CHUNK)

    def explain(image: Pixels) -> NDArray[np.floating[Any]]:
        height, width = image.shape[:2]
        x = model.prepare(image)
        with torch.inference_mode():
            logits = model.logits(x[None])[0].float().cpu()
        key = hashlib.sha256(image.tobytes()).hexdigest()
        target = Target(int(logits.argmax()))
        item = Item(x, model.pixels(image), target, logits, int(key[:8], 16), model.view(width, height), key)
        steps = method().run(model, [item], params, lent)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                artifacts = end.value[0]
                break
        return np.asarray(next(a for a in artifacts if a.kind == "image-map").arrays["value"])

    return explain


def wired(found: Mapping[str, measures.Measured]) -> dict[str, wire.Measurement]:
    """What `judge` found; a measure that is defined on none of the scenes is left out."""
    return {
        name: wire.Measurement(
            unit=UNITS[name],
            value=round(m.value, 4),
            lo=round(m.low, 4),
            hi=round(m.high, 4),
            floor=round(m.floor, 4),
            ceiling=round(m.ceiling, 4),
        )
        for name, m in found.items()
        if math.isfinite(m.value)
    }
