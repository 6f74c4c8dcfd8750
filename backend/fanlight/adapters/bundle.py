"""A bundle as a model: a folder with bundle.toml, weights.safetensors, classes.txt and card.md. Nothing in it is code.

bundle.toml names an architecture of the allow-list `fanlight_models.ARCHITECTURES` and its configuration; the weights
are safetensors.
"""

from __future__ import annotations

import json
import struct
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.artifact import MAX_HEADER, canonical
from fanlight.errors import BadRequest, FanlightError

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import TorchImageClassifier

FORMAT = 1
TASKS = ("image-classifier",)
FILES = ("bundle.toml", "weights.safetensors", "classes.txt")
KEYS = {"format", "name", "task", "description", "terms", "architecture", "features", "config", "preprocessing"}
REQUIRED = {"format", "name", "task", "architecture", "preprocessing"}
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
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


def manifest(folder: Path) -> Manifest:
    """Reads a bundle's texts; BadBundle with a sentence where something is missing or of the wrong kind."""
    missing = [f for f in FILES if not (folder / f).is_file()]
    if missing:
        raise BadBundle(
            f"The folder “{folder.name}” is no bundle: it lacks {', '.join(missing)}.",
            given=str(folder),
            allowed=[*FILES, "card.md"],
        )
    try:
        toml = tomllib.loads(_text(folder / "bundle.toml"))
    except tomllib.TOMLDecodeError as e:
        raise BadBundle(f"bundle.toml of “{folder.name}” is not valid TOML: {e}.") from e
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
    for key, kind in (
        ("name", str),
        ("architecture", str),
        ("description", str),
        ("terms", str),
        ("features", str),
        ("config", dict),
        ("preprocessing", dict),
    ):
        if not isinstance(toml.get(key, kind()), kind):
            raise BadBundle(
                f"In bundle.toml of “{folder.name}”, {key} must be a {'table' if kind is dict else 'text'}.",
                given=str(toml[key]),
            )
    card = folder / "card.md"
    return Manifest(
        folder=folder,
        classes=tuple(line.strip() for line in _text(folder / "classes.txt").splitlines() if line.strip()),
        card=_text(card) if card.is_file() else "",
        config=toml.get("config", {}),
        features=toml.get("features"),
        **{key: toml.get(key, "") for key in ("name", "task", "architecture", "description", "terms")},
        preprocessing=toml["preprocessing"],
    )


def load(folder: Path, device: torch.device | str = "cpu") -> TorchImageClassifier:
    """The bundle's model on `device`; BadBundle with a sentence where it does not fit."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
    from fanlight_models import ARCHITECTURES

    about = manifest(folder)
    if about.architecture not in ARCHITECTURES:
        raise BadBundle(
            f"“{folder.name}” names the architecture “{about.architecture}”, which is not known.",
            given=about.architecture,
            allowed=sorted(ARCHITECTURES),
        )
    check_header(folder / "weights.safetensors")
    try:
        weights = load_file(folder / "weights.safetensors")
    except SafetensorError as e:
        raise BadBundle(f"weights.safetensors of “{folder.name}” cannot be read: {e}.") from e
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
        if value.is_floating_point() and not value.isfinite().all():
            raise BadBundle(f"The tensor {key} of “{folder.name}” holds values that are not finite.")
    net.to_empty(device=device).load_state_dict(weights, strict=True)
    try:
        p: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about.preprocessing.items()}
        return TorchImageClassifier(
            net,
            classes=about.classes,
            preprocessing=Preprocessing(**p),
            features_at=about.features,
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


def check_header(file: Path) -> None:
    """Refuses a safetensors file whose header is huge or does not add up to the size of the file, before any library
    parses it."""
    size = file.stat().st_size
    with file.open("rb") as f:
        start = f.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise BadBundle(
                f"{file.name} is no safetensors file: its header claims {length} bytes (allowed: up to {MAX_HEADER}).",
                given=length,
            )
        try:
            header = json.loads(f.read(length))
            tensors = [v for k, v in header.items() if k != "__metadata__"]
            ends = sorted((int(v["data_offsets"][0]), int(v["data_offsets"][1])) for v in tensors)
            claimed = sum(_volume(v["shape"]) * BYTES[v["dtype"]] for v in tensors)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as e:
            raise BadBundle(f"The header of {file.name} cannot be understood: {type(e).__name__} {e}.") from e
    data = size - 8 - length
    whole = [0, *(end for _, end in ends)] == [*(begin for begin, _ in ends), data]
    if not whole or claimed != data:
        raise BadBundle(
            f"{file.name} holds {data} bytes of tensors where its header says {claimed}; it is damaged or cut short.",
            given=data,
            allowed=claimed,
        )


def _volume(shape: list[int]) -> int:
    total = 1
    for n in shape:
        if n < 0:
            raise ValueError(f"negative size {n}")
        total *= int(n)
    return total


def _text(file: Path) -> str:
    if file.stat().st_size > MAX_TEXT:
        raise BadBundle(
            f"{file.name} is larger than {MAX_TEXT >> 20} MiB.", given=file.stat().st_size, allowed=MAX_TEXT
        )
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise BadBundle(f"{file.name} is not UTF-8 text.") from e
