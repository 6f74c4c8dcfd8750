"""A bundle as a model: a folder with bundle.toml, weights.safetensors, classes.txt and card.md. Nothing in it is code.

bundle.toml names an architecture of the allow-list `fanlight_models.ARCHITECTURES` and its configuration; the weights
are safetensors.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import weights as files
from fanlight.artifact import canonical
from fanlight.errors import BadRequest, FanlightError

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import TorchImageClassifier

FORMAT = 1
LOADERS = {
    "concept-bottleneck": "concept_bottleneck",
    "prototype-classifier": "prototype_classifier",
    "text-to-image": "text_to_image",
}
"""Adapters of tasks whose bundles hold more than a network; each has load(manifest, device)."""
TASKS = ("image-classifier", *LOADERS)
FILES = ("bundle.toml", "weights.safetensors", "classes.txt")
BARE = ("scenes-exact",)
"""Architectures that are computed, not learned: their bundles hold neither weights nor classes."""
TEXTS = ("name", "architecture", "description", "terms", "features", "head", "unit")
KEYS = {"format", "task", *TEXTS, "config", "preprocessing"}
REQUIRED = {"format", "name", "task", "architecture", "preprocessing"}
MAX_TEXT = 1 << 20


class BadBundle(BadRequest):
    code = "bad_bundle"


@dataclass(frozen=True)
class Manifest:
    """What bundle.toml, classes.txt and card.md say; read without torch and without opening the weights."""

    folder: Path
    name: str
    task: str
    architecture: str
    config: Mapping[str, Any]
    preprocessing: Mapping[str, Any]
    classes: tuple[str, ...]
    features: str | None = None
    description: str = ""
    terms: str = ""
    card: str = ""
    head: str = "single-label"
    unit: str = ""


def manifest(folder: Path) -> Manifest:
    """Reads a bundle's texts; BadBundle with a sentence where something is missing or of the wrong kind."""
    missing = [f for f in FILES if not (folder / f).is_file()]
    try:
        toml = tomllib.loads(_text(folder / "bundle.toml")) if FILES[0] not in missing else {}
    except tomllib.TOMLDecodeError as e:
        raise BadBundle(f"bundle.toml of “{folder.name}” is not valid TOML: {e}.") from e
    bare = toml.get("architecture") in BARE
    if missing and not bare:
        raise BadBundle(
            f"The folder “{folder.name}” is no bundle: it lacks {', '.join(missing)}.",
            given=str(folder),
            allowed=[*FILES, "card.md"],
        )
    lacking, strange = sorted(REQUIRED - set(toml)), sorted(set(toml) - KEYS)
    if lacking or strange:
        said = " and ".join(
            f"{verb} {', '.join(keys)}" for verb, keys in (("lacks", lacking), ("has unknown keys", strange)) if keys
        )
        raise BadBundle(f"bundle.toml of “{folder.name}” {said}.", given=[*lacking, *strange], allowed=sorted(KEYS))
    if toml["format"] != FORMAT:
        raise BadBundle(
            f"“{folder.name}” is a bundle of format {toml['format']!r}; this version reads format {FORMAT}.",
            given=toml["format"],
        )
    if toml["task"] not in TASKS:
        raise BadBundle(
            f"“{folder.name}” is for the task {toml['task']!r}, which is not known.",
            given=toml["task"],
            allowed=list(TASKS),
        )
    for key, kind in (*((k, str) for k in TEXTS), ("config", dict), ("preprocessing", dict)):
        if not isinstance(toml.get(key, kind()), kind):
            raise BadBundle(
                f"In bundle.toml of “{folder.name}”, {key} must be a {'table' if kind is dict else 'text'}.",
                given=str(toml[key]),
            )
    card = folder / "card.md"
    return Manifest(
        folder=folder,
        classes=()
        if bare
        else tuple(line.strip() for line in _text(folder / "classes.txt").splitlines() if line.strip()),
        card=_text(card) if card.is_file() else "",
        config=toml.get("config", {}),
        features=toml.get("features"),
        head=toml.get("head", "single-label"),
        unit=toml.get("unit", ""),
        **{key: toml.get(key, "") for key in ("name", "task", "architecture", "description", "terms")},
        preprocessing=toml["preprocessing"],
    )


def load(folder: Path, device: torch.device | str = "cpu") -> TorchImageClassifier:
    """The bundle's model on `device`; BadBundle with a sentence where it does not fit."""
    import torch

    from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
    from fanlight_models import ARCHITECTURES

    about = manifest(folder)
    if about.task in LOADERS:
        loading: Callable[..., TorchImageClassifier] = import_module(f"fanlight.adapters.{LOADERS[about.task]}").load
        return loading(about, device)
    if about.architecture not in ARCHITECTURES:
        raise BadBundle(
            f"“{folder.name}” names the architecture “{about.architecture}”, which is not known.",
            given=about.architecture,
            allowed=sorted(ARCHITECTURES),
        )
    try:
        weights = files.read(folder / "weights.safetensors")
    except files.BadWeights as e:
        raise BadBundle(f"“{folder.name}”: {e.message}", given=e.given, allowed=e.allowed, hint=e.hint) from e
    try:
        with torch.device("meta"):  # nothing is allocated, whatever the configuration asks for
            net = ARCHITECTURES[about.architecture](**about.config)
    except (TypeError, ValueError, RuntimeError) as e:
        raise BadBundle(
            f"[config] of “{folder.name}” does not fit the architecture “{about.architecture}”: {e}.",
            given=dict(about.config),
        ) from e
    expected = net.state_dict()
    lacking, strange = sorted(set(expected) - set(weights)), sorted(set(weights) - set(expected))
    if lacking or strange:
        raise BadBundle(
            f"The weights of “{folder.name}” are not those of “{about.architecture}”: {len(lacking)} tensors are "
            f"missing and {len(strange)} unknown.",
            given=strange[:5],
            allowed=lacking[:5],
        )
    for key, value in weights.items():
        if value.shape != expected[key].shape or value.dtype != expected[key].dtype:
            raise BadBundle(
                f"The tensor {key} of “{folder.name}” is {value.dtype} {list(value.shape)}; {expected[key].dtype} "
                f"{list(expected[key].shape)} is expected."
            )
    net.to_empty(device=device).load_state_dict(weights, strict=True)
    try:
        p: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about.preprocessing.items()}
        return TorchImageClassifier(
            net,
            classes=about.classes,
            preprocessing=Preprocessing(**p),
            features_at=about.features,
            head=about.head,  # type: ignore[arg-type] # checked there
            unit=about.unit,
            channels_last=True,
            name=about.name,
            description=about.description,
            terms=about.terms,
            card=about.card,
            code=canonical([about.architecture, about.config]).decode(),
        )
    except TypeError as e:
        raise BadBundle(
            f"[preprocessing] of “{folder.name}” does not fit: {e}.", given=dict(about.preprocessing)
        ) from e
    except FanlightError as e:
        raise BadBundle(f"“{folder.name}”: {e.message}", given=e.given, allowed=e.allowed, hint=e.hint) from e


def _text(file: Path) -> str:
    if file.stat().st_size > MAX_TEXT:
        raise BadBundle(
            f"{file.name} is larger than {MAX_TEXT >> 20} MiB.", given=file.stat().st_size, allowed=MAX_TEXT
        )
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise BadBundle(f"{file.name} is not UTF-8 text.") from e
