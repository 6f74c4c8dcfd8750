"""The authors' published checkpoints: whole pickled modules -> a bundle of safetensors and texts, without running any code of the file.

`python -m fanlight_models.prototypes.published FILE --classes classes.txt --out FOLDER [--images TRAINING]`. Untested on the real files: they could
not be had when this was written; the tests make files of the same format.

A pickle names functions to call. Here only those that make tensors and containers are called; classes of the authors' code, of timm and of
torch.nn become empty shells that remember their attributes; everything else is refused by its name.
"""

from __future__ import annotations

import argparse
import io
import pickle
import re
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from fanlight_models.prototypes import vit

LARGEST = 4 << 30  # bytes of a checkpoint
DEEPEST = 64  # modules within modules
SHELLS = ("model", "timm", "torch.nn", "torch._C._nn", "tools", "functools")
CALLED: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): torch._utils._rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): torch._utils._rebuild_parameter,
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("torch", "Size"): torch.Size,
    ("torch.torch_version", "TorchVersion"): str,
    ("torch", "device"): torch.device,
}
STORAGES = {
    f"{kind}Storage": getattr(torch, f"{kind}Storage") for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Bool", "Byte")
}  # fmt: skip


class Refused(Exception):
    """The file asks for something that is not needed to read weights, or does not hold what a ProtoViT holds."""


class Shell:
    """Stands for an object of a class whose code is not here."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update({k: v for k, v in state.items() if isinstance(k, str)})


class Unpickler(pickle.Unpickler):
    """Makes tensors, containers and shells; refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in CALLED:
            return CALLED[module, name]
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if any(module == root or module.startswith(f"{root}.") for root in SHELLS):
            return type(re.sub(r"\W", "_", name), (Shell,), {"__module__": module})
        raise Refused(
            f"The file asks for “{module}.{name}”, which reading weights does not need. It was not called, and nothing of the file was used."
        )


def _load(file: IO[bytes], **more: Any) -> Any:
    return Unpickler(file, **more).load()


RESTRICTED = types.SimpleNamespace(
    __name__="restricted", Unpickler=Unpickler, load=_load, loads=lambda blob, **more: _load(io.BytesIO(blob), **more)
)


@dataclass(frozen=True)
class Published:
    """What a checkpoint holds.

    Args: weights: by our names; backbone: its shape; classes, per_class, parts, radius, temperature: of the head; left_out: names not used.
    """

    weights: dict[str, Tensor]
    backbone: vit.Shape
    classes: int
    per_class: int
    parts: int
    radius: int
    temperature: float
    left_out: list[str]


def read(path: Path) -> Published:
    """Errors: Refused, with the reason."""
    if path.stat().st_size > LARGEST:
        raise Refused(f"The file has {path.stat().st_size >> 20} MiB; at most {LARGEST >> 20} are read.")
    try:
        made = torch.load(path, map_location="cpu", pickle_module=RESTRICTED, weights_only=False)
    except Refused:
        raise
    except Exception as e:
        raise Refused(f"The file is no checkpoint that torch.save has written: {type(e).__name__}: {e}") from e
    return understood(flat(made), vars(made) if isinstance(made, Shell) else {})


def flat(module: object, name: str = "", depth: int = 0) -> dict[str, Tensor]:
    """The tensors of a tree of shells under the names of a state dict. Errors: Refused."""
    if not isinstance(module, Shell) or depth > DEEPEST:
        raise Refused("The file does not hold a module: the published ones hold the whole network.")
    found: dict[str, Tensor] = {}
    for kind in ("_parameters", "_buffers"):
        for key, value in _mapping(module, kind).items():
            if isinstance(value, Tensor):
                found[f"{name}{key}"] = value.detach()
    for key, value in _mapping(module, "_modules").items():
        if value is not None:
            found |= flat(value, f"{name}{key}.", depth + 1)
    return found


def _mapping(module: Shell, kind: str) -> Mapping[str, Any]:
    value = vars(module).get(kind, {})
    return value if isinstance(value, Mapping) else {}


def understood(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Published:
    """Errors: Refused where a part of a ProtoViT is missing or has another shape."""
    for wanted in (
        "prototype_vectors",
        "patch_select",
        "last_layer.weight",
        "features.pos_embed",
        "features.cls_token",
    ):
        if wanted not in tensors:
            raise Refused(
                f"The file has no “{wanted}”, so it is no ProtoViT. It has: {', '.join(sorted(tensors)[:8])} …"
            )
    count, width, parts = tensors["prototype_vectors"].shape
    classes = len(tensors["last_layer.weight"])
    if tensors["last_layer.weight"].shape != (classes, count) or classes == 0 or count % classes:
        raise Refused(f"{count} prototypes are not shared out evenly by {classes} classes.")
    backbone = _backbone(tensors, width)
    weights = {
        f"features.{k}": tensors[f"features.{k}"]
        for k in vit.build(backbone).state_dict()
        if f"features.{k}" in tensors
    }
    weights |= {f"head.{k}": tensors[k] for k in ("prototype_vectors", "patch_select", "last_layer.weight")}
    used = {k.removeprefix("head.") for k in weights}
    missing = [k for k in vit.build(backbone).state_dict() if f"features.{k}" not in tensors]
    if missing:
        raise Refused(f"The file lacks weights of its backbone: {', '.join(missing[:6])}.")
    return Published(
        {k: v.float().contiguous() for k, v in weights.items()},
        backbone,
        classes,
        count // classes,
        parts,
        radius=_number(about, "radius", 1),
        temperature=float(_number(about, "temp", 100)),
        left_out=sorted(k for k in tensors if k not in used),
    )


def _number(about: Mapping[str, Any], name: str, usual: int) -> int:
    value = about.get(name, usual)
    return int(value) if isinstance(value, (int, float)) else usual


def _backbone(tensors: Mapping[str, Tensor], width: int) -> vit.Shape:
    """The shape of the transformer, from its weights."""

    def blocks(name: str) -> int:
        return len({k.split(".")[2] for k in tensors if k.startswith(f"features.{name}.")})

    cait = blocks("blocks_token_only") > 0
    patch = tensors["features.patch_embed.proj.weight"].shape[-1]
    tokens = tensors["features.pos_embed"].shape[1] - (not cait)
    side = round(tokens**0.5)
    if side * side != tokens:
        raise Refused(f"{tokens} tokens are no square grid.")
    heads = len(tensors["features.blocks.0.attn.proj_l.weight"]) if cait else max(1, width // 64)
    return vit.Shape(
        "cait" if cait else "deit", side * patch, patch, width, blocks("blocks"), heads, blocks("blocks_token_only")
    )


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fanlight_models.prototypes.published", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--classes",
        type=Path,
        required=True,
        help="one class name a line, in the order of the folders it was trained on",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the bundle")
    parser.add_argument("--name", default="ProtoViT, as published", help="for people")
    parser.add_argument(
        "--images", type=Path, help="training pictures, a subfolder for each class, to find where prototypes come from"
    )
    options = parser.parse_args(given)
    try:
        found = read(options.file)
        names = [line.strip() for line in options.classes.read_text("utf-8").splitlines() if line.strip()]
        if len(names) != found.classes:
            raise Refused(f"There are {len(names)} class names; the file has {found.classes} classes.")
        from fanlight_models.prototypes import imported  # it needs `Refused` of this module

        known = imported.write(options.out, found, names, options.name, options.images)
    except (Refused, OSError) as e:
        sys.stderr.write(f"{e}\n")
        return 1
    count = found.classes * found.per_class
    told = f"; {known:,} of them with their training picture" if options.images else ""
    sys.stderr.write(f"{options.out}: {count:,} prototypes of {found.classes} classes{told}\n")
    return 0


if __name__ == "__main__":
    from fanlight_models.prototypes.published import (
        main as run,
    )  # not of `__main__`: errors are told apart by their class

    sys.exit(run())
