"""What the page of an explanation asks the server for: the record with all that is said of it, and its trust as it grows."""

from __future__ import annotations

import asyncio
from typing import Any

from dash import set_props

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import errors, panels, record, workbench
from fanlight_ui.session import ask
from fanlight_ui.views import trust


async def known(id: str) -> record.Known:
    """The record and everything that the page says of it. A model or method that is no longer registered takes only its own part away."""
    found = await ask(calls.explanation(id))
    if found.state != "succeeded":
        return record.Known(found)
    told, infos, model, before, (further, jobs) = await asyncio.gather(
        panels.told_of(found),
        ask(calls.explainers()),
        or_none(calls.model(found.model)),
        or_none(calls.explanation(found.parent) if found.parent else None),
        measuring(found),
    )
    return record.Known(
        found,
        told,
        info=next((i for i in infos if i.name == found.explainer), None),
        classes=workbench.classes(model) if model else (),
        before=before,
        further=further,
        jobs=jobs,
    )


async def or_none(call: Any) -> Any:
    """The answer, or None where the thing is gone."""
    if call is None:
        return None
    try:
        return await ask(call)
    except FanlightError as e:
        if e.status != 404:
            raise
        return None


def state(found: wire.Explanation) -> dict[str, Any]:
    """What the page remembers of what it shows; it draws again where this is another."""
    checks = {name: check.state for name, check in found.trust.checks.items()}
    return {"state": found.state, "trust": found.trust.state, "checks": checks, "job": found.job}


async def measuring(found: wire.Explanation) -> tuple[list[wire.Measure] | None, dict[str, wire.Job]]:
    """What can be measured further, and the jobs that measure now."""
    waiting = [c.job for c in found.trust.checks.values() if c.state in trust.WAITING and c.job]
    further, *jobs = await asyncio.gather(
        or_none(calls.measures(found.id)), *(or_none(calls.job(name)) for name in waiting)
    )
    return further, {j.id: j for j in jobs if j is not None}


async def draw_trust(found: wire.Explanation) -> None:
    """Its trust anew, and nothing else of the page."""
    further, jobs = await measuring(found)
    set_props("ex-trust", {"children": record.trust_parts(record.Known(found, further=further, jobs=jobs))})
    set_props("ex-badge", {"children": trust.badge(found.trust)})


async def check(id: str) -> dict[str, Any]:
    """Asks for everything that can be measured further and is not measured yet; the page's new state."""
    found, further = await asyncio.gather(ask(calls.explanation(id)), ask(calls.measures(id)))
    names = [m.name for m in trust.unmeasured(found.trust, further) if m.available]
    return await _after(id, calls.measure_trust(id, names) if names else None)


async def leave(id: str, job: str) -> dict[str, Any]:
    """Leaves one of the measurements that run; the page's new state."""
    return await _after(id, calls.cancel(job))


async def _after(id: str, call: Any) -> dict[str, Any]:
    try:
        if call is not None:
            await ask(call)
    except FanlightError as e:  # it ended meanwhile, or cannot be measured any more
        errors.toast(e.message)
    found = await ask(calls.explanation(id))
    await draw_trust(found)
    return state(found)
