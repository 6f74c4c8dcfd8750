"""A bundle made of another one by a change: a folder of its own with its own digest, that says what it was made from and what that did.

Nothing of the original is touched; to take a change back is to choose the original. The new folder holds all it needs, pictures too.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from fanlight_models.prototypes.bundle import (
    JPEG,
    BadPrototypes,
    Bundle,
    Nearest,
    Picture,
    Pixels,
    config,
    sha256_of,
    table,
)
from fanlight_models.prototypes.projection import Source
from fanlight_models.prototypes.protovit import ProtoViT

LINEAGE = "lineage.json"
COPIED = ("classes.txt", "nearest.safetensors", "quality.json")


@dataclass(frozen=True, eq=False)
class Learnt:
    """Prototypes that were learnt, and where they come from; pictures are numbered as `pictures` has them.

    Args:
        numbers: of the prototypes; those beyond the old ones are further ones. sources, nearest: one for each.
        pictures: number -> (H, W, 3) as the model saw it, class, name. classes: of the new model.
    """

    numbers: Sequence[int]
    sources: Sequence[Source]
    nearest: Nearest
    pictures: Mapping[int, tuple[Pixels, int, str]]
    classes: Sequence[str]


def write(
    folder: Path,
    held: Bundle,
    model: ProtoViT,
    *,
    name: str,
    story: Mapping[str, Any],
    section: str,
    removed: Sequence[int] = (),
    learnt: Learnt | None = None,
) -> None:
    """Writes the bundle of a changed model; it appears at once, whole.

    Args:
        held: what it was made of. model: the changed one, which may be the same object.
        folder: must not exist.
        name: for people. story: of this change, JSON-able; the stories of earlier changes go before it in lineage.json.
        section: Markdown, appended to the card. removed: prototypes that this change took out. learnt: those that it taught.
    Errors: BadPrototypes where the folder exists.
    """
    if folder.exists():
        raise BadPrototypes(f"There is a folder {folder} already.")
    draft = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    old = held.folder
    for file in COPIED:
        if (old / file).is_file():
            shutil.copyfile(old / file, draft / file)
    if (old / "pictures").is_dir():
        shutil.copytree(old / "pictures", draft / "pictures")
    save_file({k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}, draft / "weights.safetensors")
    if (old / "prototypes.json").is_file():
        told = json.loads((old / "prototypes.json").read_text("utf-8"))
        told["removed"] = sorted({*told.get("removed", ()), *removed} - {*(learnt.numbers if learnt else ())})
        if learnt is not None:
            _teach(draft, told, learnt)
        (draft / "prototypes.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    stories = [*lineage(old), dict(story)]
    (draft / LINEAGE).write_text(json.dumps(stories, indent=1, ensure_ascii=False) + "\n", "utf-8")
    card = (old / "card.md").read_text("utf-8") if (old / "card.md").is_file() else f"# {name}\n"
    (draft / "card.md").write_text(f"{card.rstrip()}\n\n{section.strip()}\n", "utf-8")
    toml = tomllib.loads((old / "bundle.toml").read_text("utf-8"))
    toml["name"] = name
    toml["config"] = config(model)
    flat = {k: v for k, v in toml.items() if not isinstance(v, dict)}
    parts = [table(flat), *(f"[{k}]\n{table(v)}" for k, v in toml.items() if isinstance(v, dict))]
    (draft / "bundle.toml").write_text("\n".join(parts), "utf-8")
    draft.rename(folder)


def _teach(draft: Path, told: dict[str, Any], learnt: Learnt) -> None:
    """Adds pictures, sources and nearest pictures of what was learnt. Its pictures get numbers that no picture of the original has."""
    (draft / "classes.txt").write_text("".join(f"{c}\n" for c in learnt.classes), "utf-8")
    near = load_file(draft / "nearest.safetensors") if (draft / "nearest.safetensors").is_file() else None
    known = [p["index"] for p in told.get("pictures", ())]
    first = 1 + max([-1, *known, *([] if near is None else [int(near["image"].max())])])
    (draft / "pictures").mkdir(exist_ok=True)
    for number, (pixels, label, title) in sorted(learnt.pictures.items()):
        out = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(out, "JPEG", quality=JPEG, subsampling=0)
        file = f"pictures/{first + number:06d}.jpg"
        (draft / file).write_bytes(out.getvalue())
        sha = hashlib.sha256(out.getvalue()).hexdigest()
        made = Picture(first + number, label, title, sha256_of(pixels), file, sha)
        told["pictures"] = [*told.get("pictures", ()), asdict(made)]
    if told.get("prototypes") is not None:
        for j, source in zip(learnt.numbers, learnt.sources, strict=True):
            row = asdict(source) | {"image": None if source.image is None else first + source.image}
            told["prototypes"][j : j + 1] = [row]
    if near is not None:
        rows = torch.tensor(list(learnt.numbers))
        image = torch.where(learnt.nearest.image >= 0, learnt.nearest.image + first, -1)
        fresh = {
            "image": image.int(),
            "activation": learnt.nearest.activation.float(),
            "token": learnt.nearest.token.short(),
        }
        grown = max(int(rows.max()) + 1, len(near["image"])) - len(near["image"])
        for key, value in near.items():
            near[key] = torch.cat([value, value.new_zeros((grown, *value.shape[1:]))])
            near[key][rows] = fresh[key].to(value.dtype)
        save_file(near, draft / "nearest.safetensors")


def lineage(folder: Path) -> list[dict[str, Any]]:
    """What a bundle was made by, oldest first; nothing of an original."""
    file = folder / LINEAGE
    return list(json.loads(file.read_text("utf-8"))) if file.is_file() else []
