"""A bundle made of another one by a change: a folder of its own with its own digest, that says what it was made from and what that did.

Nothing of the original is touched; to take a change back is to choose the original. The new folder holds all it needs, pictures too.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from fanlight_models.prototypes.bundle import BadPrototypes, Bundle, table

LINEAGE = "lineage.json"
COPIED = ("classes.txt", "nearest.safetensors", "quality.json")


def write(
    folder: Path, held: Bundle, *, name: str, story: Mapping[str, Any], section: str, removed: Sequence[int] = ()
) -> None:
    """Writes the bundle of `held.model`, which was changed in place, beside that it was read from; it appears at once, whole.

    Args:
        folder: must not exist.
        name: for people. story: of this change, JSON-able; the stories of earlier changes go before it in lineage.json.
        section: Markdown, appended to the card. removed: prototypes that this change took out.
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
    save_file(
        {k: v.detach().cpu().contiguous() for k, v in held.model.state_dict().items()}, draft / "weights.safetensors"
    )
    if (old / "prototypes.json").is_file():
        told = json.loads((old / "prototypes.json").read_text("utf-8"))
        told["removed"] = sorted({*told.get("removed", ()), *removed})
        (draft / "prototypes.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    stories = [*lineage(old), dict(story)]
    (draft / LINEAGE).write_text(json.dumps(stories, indent=1, ensure_ascii=False) + "\n", "utf-8")
    card = (old / "card.md").read_text("utf-8") if (old / "card.md").is_file() else f"# {name}\n"
    (draft / "card.md").write_text(f"{card.rstrip()}\n\n{section.strip()}\n", "utf-8")
    toml = tomllib.loads((old / "bundle.toml").read_text("utf-8"))
    toml["name"] = name
    flat = {k: v for k, v in toml.items() if not isinstance(v, dict)}
    parts = [table(flat), *(f"[{k}]\n{table(v)}" for k, v in toml.items() if isinstance(v, dict))]
    (draft / "bundle.toml").write_text("\n".join(parts), "utf-8")
    draft.rename(folder)


def lineage(folder: Path) -> list[dict[str, Any]]:
    """What a bundle was made by, oldest first; nothing of an original."""
    file = folder / LINEAGE
    return list(json.loads(file.read_text("utf-8"))) if file.is_file() else []
