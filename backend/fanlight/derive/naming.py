"""What a derived model is called: by its first ancestor and all that was done since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fanlight.derive.base import free, slug


def called(origin: str, changes: Sequence[Mapping[str, Any]]) -> str:
    """Args: origin: name of the first model; changes: oldest first."""
    out: set[int] = set()
    anew: set[int] = set()
    added: list[str] = []
    for change in changes:
        out |= set(change.get("remove") or ())
        anew |= set(change.get("forget") or ())
        out -= anew & set(change.get("forget") or ())
        added += [change["add_class"]] if change.get("add_class") else []
    said = [origin]
    if out:
        said.append(f"without prototype{'s' if len(out) > 1 else ''} {listed(sorted(out))}")
    if anew - out:
        said.append(f"prototype{'s' if len(anew - out) > 1 else ''} {listed(sorted(anew - out))} anew")
    if added:
        said.append(f"with {listed(added)}")
    return ", ".join(said)


def place(into: Path, name: str, job: str) -> Path:
    """Where its bundle goes: of a job always the same folder."""
    return into / f"{slug(name)[:60]}-{job[:8].lower()}" if job else free(into, slug(name))


def listed(words: Sequence[object]) -> str:
    said = [str(w) for w in words]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
