"""What the pages share on which a stored result is changed live: which record, and which edits an address names. Pure, but for `finished`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import Conflict, NotFound
from fanlight_ui.session import ask

SHARE_DAYS = 30


async def finished(id: str, kind: str) -> tuple[wire.Explanation, wire.ArtifactRef]:
    """A record and its artifact of this kind. Errors: not_finished, not_found."""
    record = await ask(calls.explanation(id))
    if record.state != "succeeded":
        raise Conflict(
            f"This explanation is {record.state}.", code="not_finished", hint="Open its record to follow it."
        )
    ref = next((a for a in record.artifacts if a.kind == kind), None)
    if ref is None:
        raise NotFound(f"This explanation is none by {kind}.", hint="Open its record.")
    return record, ref


def share_days(system: wire.System) -> int:
    """How long a link lasts unless somebody says otherwise."""
    return int(system.settings.get("share_days", SHARE_DAYS))


def among(edits: Sequence[Mapping[str, Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """Those edits that a page is about."""
    return [dict(e) for e in edits if next(iter(e)) in names]


def wanted(text: str | None, stored: list[dict[str, Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """The edits that an address names; those that are stored where it names none, or nothing that could be one."""
    try:
        found = json.loads(text) if text is not None else stored
    except (ValueError, RecursionError):
        return stored
    fits = isinstance(found, list) and all(isinstance(e, dict) and len(e) == 1 and set(e) <= set(names) for e in found)
    return found if fits else stored
