"""The models of a backup: those that were made of others, which are nowhere else.

They are members `models/NAME/PATH` of it, each with its digest in the manifest."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from fanlight import bundles
from fanlight.errors import Conflict

PLACE = "models/"
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
LARGEST = 8 * 2**30  # bytes of one file


def listed(data_dir: Path) -> dict[str, Path]:
    """Member -> file, by name. What is still being written is not among them."""
    found = {}
    for bundle in bundles.made(data_dir):
        for file in sorted(bundle.rglob("*")):
            if file.is_file() and not file.is_symlink():
                found[f"{PLACE}{bundle.name}/{file.relative_to(bundle).as_posix()}"] = file
    return found


def digests(files: Mapping[str, Path]) -> dict[str, str]:
    """Member -> SHA-256."""
    return {name: _digest(file) for name, file in files.items()}


def plain(names: object) -> bool:
    """Whether these are members with their digests, whose names stay inside."""
    if not isinstance(names, dict):
        return False
    parts = [n.split("/") for n in names]
    return all(p[0] + "/" == PLACE and len(p) > 2 and all(map(PART.fullmatch, p[1:])) for p in parts)


class Arriving:
    """The models of a backup that is restored, in a folder beside their place until all are whole.

    Args: data_dir: of the installation; expected: member -> SHA-256, of the manifest, `plain`. Errors: not_empty where a model of that name is there.
    """

    def __init__(self, data_dir: Path, expected: Mapping[str, str]):
        self._home, self._expected, self._found = bundles.derived(data_dir), dict(expected), set[str]()
        self._new = self._home / f".restore-{os.getpid()}"
        there = [n for n in self.names if (self._home / n).exists()]
        if there:
            raise Conflict(
                f"There is a model {there[0]} already in {self._home}.",
                code="not_empty",
                hint="A backup is restored into an empty place: move the old one away.",
            )

    def takes(self, member: tarfile.TarInfo) -> bool:
        """Whether it is one of them."""
        return member.name in self._expected and member.isfile() and member.size <= LARGEST

    def write(self, name: str, content: BinaryIO) -> bool:
        """Args: content: to read from. Returns whether it is whole."""
        target = self._new / name.removeprefix(PLACE)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            shutil.copyfileobj(content, out)
            out.flush()
            os.fsync(out.fileno())
        self._found.add(name)
        return _digest(target) == self._expected[name]

    @property
    def missing(self) -> list[str]:
        """Members that the manifest names and that did not come."""
        return sorted(set(self._expected) - self._found)

    def keep(self) -> None:
        """All are whole: puts them where the server looks."""
        for name in self.names:
            (self._new / name).rename(self._home / name)

    def close(self) -> None:
        shutil.rmtree(self._new, ignore_errors=True)

    @property
    def names(self) -> list[str]:
        """Of the models."""
        return sorted({n.removeprefix(PLACE).split("/")[0] for n in self._expected})


def _digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
