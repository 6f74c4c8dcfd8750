"""A trained ProtoViT as a bundle: a folder without code that says where every prototype comes from, with the pictures that it comes from.

| file | holds |
|---|---|
| bundle.toml | task `prototype-classifier`, the shape of backbone and head, preprocessing |
| weights.safetensors | all tensors of the model, gates rounded |
| classes.txt, card.md | one name a line; data, training, accuracy, limits |
| prototypes.json | of each prototype its training picture, tokens, movement, ... (`projection.Source`); of each picture its class, name and digests |
| nearest.safetensors | the training pictures that each prototype is most active on: image, activation (m, n), token (m, n, K) |
| quality.json | what was measured of the prototypes (`quality`) |
| pictures/ | the training pictures that are named, as the model saw them, JPEG |
"""

from __future__ import annotations

import hashlib
import io
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from fanlight_models.prototypes import vit
from fanlight_models.prototypes.projection import Source
from fanlight_models.prototypes.protovit import ProtoViT

FORMAT, TASK, ARCHITECTURE = 1, "prototype-classifier", "protovit"
JPEG = 90
HEAD = ("classes", "per_class", "parts", "radius", "temperature")
MAX_PIXELS = 2048 * 2048
Pixels = NDArray[np.uint8]


class BadPrototypes(ValueError):
    """A folder that is no bundle of a prototype classifier; the message is a sentence."""


@dataclass(frozen=True)
class Picture:
    """A training picture that is named.

    Args:
        index: in the training set, in the order of its projection. label: class. name: for people.
        sha256: of its pixels (H, W, 3) as the model saw them. file: below the bundle, None where it was not kept; file_sha256: of that file.
    """

    index: int
    label: int
    name: str
    sha256: str
    file: str | None = None
    file_sha256: str | None = None


@dataclass(frozen=True, eq=False)
class Nearest:
    """The training pictures that prototypes are most active on, best first.

    image (m, n) int64, -1: none; activation (m, n); token (m, n, K) int64.
    """

    image: Tensor
    activation: Tensor
    token: Tensor


@dataclass(frozen=True, eq=False)
class Bundle:
    """What a folder held. `sources` is None of published weights, which do not say where their prototypes come from."""

    folder: Path
    model: ProtoViT
    sources: list[Source] | None = None
    pictures: Mapping[int, Picture] = field(default_factory=dict)
    nearest: Nearest | None = None
    quality: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    """sha256 over prototypes.json, nearest.safetensors and quality.json: what explanations print beside the weights."""

    def jpeg(self, index: int) -> bytes | None:
        """The file of a training picture; None where it is not there any more, or is not what it was."""
        known = self.pictures.get(index)
        file = None if known is None or known.file is None else (self.folder / known.file).resolve()
        if known is None or file is None or not file.is_relative_to(self.folder.resolve()) or not file.is_file():
            return None
        blob = file.read_bytes()
        return blob if hashlib.sha256(blob).hexdigest() == known.file_sha256 else None

    def picture(self, index: int) -> Pixels | None:
        """The same as (h, w, 3)."""
        blob = self.jpeg(index)
        if blob is None:
            return None
        try:
            with Image.open(io.BytesIO(blob), formats=("JPEG", "PNG")) as image:
                if image.width * image.height > MAX_PIXELS:
                    return None
                return np.asarray(image.convert("RGB"), np.uint8)
        except (OSError, ValueError):
            return None


def write(
    folder: Path,
    model: ProtoViT,
    *,
    name: str,
    description: str,
    terms: str,
    classes: Sequence[str],
    preprocessing: Mapping[str, Any],
    card: str,
    sources: Sequence[Source],
    labels: Sequence[int],
    pictures: Mapping[int, Pixels],
    names: Mapping[int, str],
    nearest: Nearest,
    quality: Mapping[str, Any],
    about: Mapping[str, Any],
) -> None:
    """The bundle of a projected model.

    Args:
        preprocessing: as bundle.toml says it, on the scale 0..255.
        sources: of the projection. labels: class of every training picture.
        pictures: (H, W, 3) of those that are kept. names: of those, for people.
        about: world, version, split: what the training pictures are.
    Errors: BadPrototypes where the model is not projected or the numbers of things differ.
    """
    _projected(model)
    if len(sources) != len(model.head.own):
        raise BadPrototypes(f"{len(sources)} sources for {len(model.head.own)} prototypes.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pictures").mkdir(exist_ok=True)
    known = []
    for index, pixels in sorted(pictures.items()):
        out = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(out, "JPEG", quality=JPEG, subsampling=0)
        file = f"pictures/{index:06d}.jpg"
        (folder / file).write_bytes(out.getvalue())
        sha = hashlib.sha256(out.getvalue()).hexdigest()
        known.append(Picture(index, int(labels[index]), names.get(index, ""), sha256_of(pixels), file, sha))
    story = {
        "format": FORMAT,
        **about,
        "pictures": [asdict(p) for p in known],
        "prototypes": [asdict(s) for s in sources],
    }
    (folder / "prototypes.json").write_text(json.dumps(story, indent=1) + "\n", "utf-8")
    (folder / "quality.json").write_text(json.dumps(dict(quality), indent=1) + "\n", "utf-8")
    tensors = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, folder / "weights.safetensors")
    save_file(
        {
            "image": nearest.image.int(),
            "activation": nearest.activation.float().contiguous(),
            "token": nearest.token.to(torch.int16),
        },
        folder / "nearest.safetensors",
    )
    (folder / "classes.txt").write_text("".join(f"{c}\n" for c in classes), "utf-8")
    (folder / "card.md").write_text(card, "utf-8")
    head = {
        "format": FORMAT,
        "name": name,
        "task": TASK,
        "architecture": ARCHITECTURE,
        "description": description,
        "terms": terms,
    }
    parts = [table(head), "[config]", table(config(model)), "[preprocessing]", table(preprocessing)]
    (folder / "bundle.toml").write_text("\n".join(parts), "utf-8")


def config(model: ProtoViT) -> dict[str, Any]:
    """What `build` makes an equal model from."""
    head = model.head
    own = {
        "classes": head.last_layer.out_features,
        "per_class": head.per_class,
        "parts": head.patch_select.shape[-1],
        "radius": head.radius,
        "temperature": head.temperature,
    }
    return {**asdict(model.features.shape), **own}


def build(given: Mapping[str, Any]) -> ProtoViT:
    """A fresh model from `config`. Errors: BadPrototypes."""
    known = {f.name for f in fields(vit.Shape)} | set(HEAD)
    strange = sorted(set(given) - known)
    if strange or "classes" not in given:
        raise BadPrototypes(
            f"[config] {'has unknown keys ' + ', '.join(strange) if strange else 'lacks classes'}; allowed are {', '.join(sorted(known))}."
        )
    head = {k: given[k] for k in HEAD if k in given and k != "classes"}
    try:
        return ProtoViT(vit.Shape(**{k: v for k, v in given.items() if k not in HEAD}), int(given["classes"]), **head)
    except (TypeError, ValueError, RuntimeError) as e:
        raise BadPrototypes(f"[config] makes no ProtoViT: {e}") from e


def read(folder: Path) -> Bundle:
    """Errors: BadPrototypes, saying what is missing or does not fit."""
    for name in ("bundle.toml", "weights.safetensors"):
        if not (folder / name).is_file():
            raise BadPrototypes(f"The folder “{folder.name}” lacks {name}.")
    try:
        toml = tomllib.loads((folder / "bundle.toml").read_text("utf-8"))
        story = _json(folder / "prototypes.json")
        quality = _json(folder / "quality.json")
        tensors = load_file(folder / "weights.safetensors")
    except (ValueError, SafetensorError) as e:
        raise BadPrototypes(f"A file of “{folder.name}” cannot be read: {e}") from e
    model = build(toml.get("config", {}))
    expected = model.state_dict()
    wrong = [k for k in expected if k not in tensors or tensors[k].shape != expected[k].shape]
    wrong += [k for k in tensors if k not in expected]
    if wrong:
        raise BadPrototypes(
            f"The weights of “{folder.name}” are not those of its model: {', '.join(wrong[:3])}"
            + (f" and {len(wrong) - 3} more." if len(wrong) > 3 else ".")
        )
    if not all(bool(torch.isfinite(v).all()) for v in tensors.values()):
        raise BadPrototypes(f"The weights of “{folder.name}” hold numbers that are not finite.")
    model.load_state_dict(tensors)
    _projected(model)
    listed = story.get("prototypes")
    try:
        sources = None if listed is None else [Source(**s) for s in listed]
        pictures = {p["index"]: Picture(**p) for p in story.get("pictures", ())}
    except (TypeError, KeyError) as e:
        raise BadPrototypes(f"prototypes.json of “{folder.name}” does not fit: {e}") from e
    if sources is not None:
        _check(sources, model, folder)
    said = {k: v for k, v in story.items() if k not in ("prototypes", "pictures", "format")}
    model.eval().requires_grad_(False)
    return Bundle(folder, model, sources, pictures, _nearest(folder, model), quality, said, _digest(folder))


def sha256_of(pixels: Pixels) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


def kept(sources: Iterable[Source], nearest: Nearest, most: int = 3) -> list[int]:
    """Indices of the training pictures that a bundle should hold: every source, and the `most` nearest others of each prototype."""
    wanted = set()
    for source, found in zip(sources, nearest.image.tolist(), strict=True):
        if source.image is not None:
            wanted.add(source.image)
        wanted |= set([i for i in found if i >= 0 and i != source.image][:most])
    return sorted(wanted)


def _projected(model: ProtoViT) -> None:
    gate = model.head.gate
    if not bool(((gate == 0) | (gate == 1)).all()):
        raise BadPrototypes(
            "The gates of the model are not rounded: it was not projected, so its prototypes show nothing."
        )


def _check(sources: Sequence[Source], model: ProtoViT, folder: Path) -> None:
    count, parts = model.head.patch_select.shape[1:]
    if len(sources) != count:
        raise BadPrototypes(
            f"prototypes.json of “{folder.name}” tells of {len(sources)} prototypes; the model has {count}."
        )
    tokens = model.features.shape.grid[0] * model.features.shape.grid[1]
    for j, source in enumerate(sources):
        if len(source.token) != parts or any(t is not None and not 0 <= t < tokens for t in source.token):
            raise BadPrototypes(
                f"prototypes.json of “{folder.name}”: the tokens of prototype {j} are not {parts} of 0 to {tokens - 1}."
            )


def _nearest(folder: Path, model: ProtoViT) -> Nearest | None:
    file = folder / "nearest.safetensors"
    if not file.is_file():
        return None
    try:
        found = load_file(file)
        held = Nearest(found["image"].long(), found["activation"], found["token"].long())
    except (SafetensorError, KeyError) as e:
        raise BadPrototypes(f"nearest.safetensors of “{folder.name}” cannot be read: {e}") from e
    count, parts = model.head.patch_select.shape[1:]
    if (
        held.image.shape != held.activation.shape
        or held.token.shape != (*held.image.shape, parts)
        or len(held.image) != count
    ):
        raise BadPrototypes(f"nearest.safetensors of “{folder.name}” is not about {count} prototypes of {parts} parts.")
    return held


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    for name in ("prototypes.json", "nearest.safetensors", "quality.json"):
        file = folder / name
        total.update(hashlib.sha256(file.read_bytes() if file.is_file() else b"").digest())
    return total.hexdigest()


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    found = json.loads(file.read_text("utf-8"))
    if not isinstance(found, dict):
        raise BadPrototypes(f"{file.name} of “{file.parent.name}” is no JSON object.")
    return found


def table(table: Mapping[str, Any]) -> str:
    """TOML of texts, numbers and lists: JSON spells them alike."""
    return "".join(f"{k} = {json.dumps(v, ensure_ascii=False)}\n" for k, v in table.items())
