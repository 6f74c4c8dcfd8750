"""A cache as huggingface_hub lays it out, made of folders that are here, with the network switched off."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

constants = pytest.importorskip("huggingface_hub.constants", reason="huggingface_hub is not installed")

COMMITS = ("a" * 40, "b" * 40)


def offline(patch: pytest.MonkeyPatch, cache: Path) -> None:
    """huggingface_hub with this cache and without a network."""
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_HUB_OFFLINE", True)


def held(cache: Path, name: str, folder: Path, commit: str = COMMITS[0], branch: str = "main") -> Path:
    """The snapshot of `owner/name` at a commit, a copy of a folder; the branch points there."""
    place = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, place / "snapshots" / commit)
    (place / "refs").mkdir(exist_ok=True)
    (place / "refs" / branch).write_text(commit)
    return place / "snapshots" / commit
