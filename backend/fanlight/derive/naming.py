"""What a derived model is called (by its first ancestor and all that was done since), where it goes, and which prototypes a change names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fanlight.adapters import loader
from fanlight.derive.base import free, slug
from fanlight.errors import InvalidField
from fanlight_models.prototypes import derived


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


def begun(bundle: Path, title: str, change: Mapping[str, Any], into: Path, job: str) -> tuple[str, Path]:
    """Name and folder of what comes of a change. Args: bundle, title: of the model that is changed."""
    stories = derived.lineage(bundle)
    base = stories[0]["parent"]["name"] if stories else title
    name = called(base, [*(s["change"] for s in stories), change])
    return name, place(into, name, job)


def made_before(folder: Path, name: str) -> dict[str, Any]:
    """The story of a folder that this job had finished before it was broken off."""
    made = loader.load({"bundle": str(folder)})
    return {**derived.lineage(folder)[-1], "bundle": str(folder), "name": name, "digest": made.digest}


def prototypes(which: Collection[int], count: int) -> list[int]:
    """Those that are named, each once. Errors: unknown_prototype."""
    for j in which:
        if not 0 <= j < count:
            raise InvalidField(
                f"There is no prototype {j}: they are numbered from 0 to {count - 1}.",
                code="unknown_prototype",
                given=j,
                allowed=[0, count - 1],
            )
    if not which:
        raise InvalidField("No prototype is named.", code="unknown_prototype", given=[], allowed=[0, count - 1])
    return sorted(set(which))


def listed(words: Sequence[object]) -> str:
    said = [str(w) for w in words]
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
