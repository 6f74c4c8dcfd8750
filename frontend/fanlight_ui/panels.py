"""One explanation in a panel, in whatever state it is: waiting with its place and progress, done with its map, or ended with what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight_ui import errors, session, views
from fanlight_ui.views import base, trust
from fanlight_ui.views.numbers import percent, seconds

ENDED = {
    "cancelled": "It was cancelled before it finished; nothing was stored.",
    "expired": "It waited longer than the server allows and was given up.",
    "failed": "It ended without a result.",
}


def cancel_id(slot: int) -> dict[str, Any]:
    return {"type": "cancel", "slot": slot}


def badge_id(slot: int) -> dict[str, Any]:
    return {"type": "badge", "slot": slot}


def progress_words(job: wire.Job) -> str:
    """What is being waited for and how long it will take. assets/progress.js says the same for events that arrive later."""
    if job.state == "queued":
        return "Next in the queue" if not job.place else f"{job.place} before it in the queue"
    left = f"about {seconds(job.seconds_left)} left" if job.seconds_left is not None else ""
    return " · ".join(t for t in (job.message or "Running", f"{100 * job.progress:.0f} %", left) if t)


def waiting(job: wire.Job, slot: int) -> Component:
    """A job that has not ended. assets/progress.js moves it with the events of the stream."""
    preview = html.Img(className="preview", alt="What is known so far", hidden=True)
    parts: list[Component] = [html.P(progress_words(job), className="said"), base.meter(job), preview]
    if job.mine:
        parts.append(html.Button("Cancel", id=cancel_id(slot), className="button small"))
    return html.Div(parts, className="waiting", **{"data-job": job.id})


def ended(record: wire.Explanation) -> Component:
    """An explanation without a result, and what to do."""
    again = session.href("/explain", model=record.model, input=record.input, explainers=record.explainer)
    return html.Div(
        [
            errors.notice(record.error, title=f"{record.explainer_title} failed")
            if record.error
            else html.P(ENDED.get(record.state, ENDED["failed"])),
            dcc.Link("Change it and ask again", href=again),
        ],
        className="ended",
    )


async def told_of(record: wire.Explanation) -> dict[str, dict[str, Any]]:
    """What the server says of each artifact of a record, by digest."""
    found = await asyncio.gather(*(session.ask(calls.describe(a.digest)) for a in record.artifacts))
    return {a.digest: told for a, told in zip(record.artifacts, found, strict=True)}


def result(record: wire.Explanation, told: Mapping[str, Mapping[str, Any]], slot: int) -> list[Component]:
    """A finished explanation as one of several panels."""
    chosen = views.principal(record.artifacts)
    if chosen is None:
        return [ended(record)]
    about = told[chosen.digest]
    return [
        views.show(chosen, about, base.Scene.of(record, slot=slot)),
        html.Div(
            [
                html.H3(dcc.Link(record.explainer_title, href=session.href(f"/e/{record.id}"))),
                html.Span(trust.badge(record.trust), id=badge_id(slot)),
                html.P(facts(record), className="quiet"),
                html.P(about.get("sentence") or record.summary),
                further(record),
                base.table(about),
            ],
            className="about",
        ),
    ]


def further(record: wire.Explanation) -> Component | None:
    """The way to the page on which this kind of result is changed, where it has one."""
    own = views.page(record.artifacts)
    return dcc.Link(own[1], href=session.href(f"/e/{record.id}/{own[0]}"), className="button small") if own else None


def facts(record: wire.Explanation) -> str:
    """Parameters, completeness and time in a line."""
    said = [f"{name.replace('_', ' ')} {_spell(value)}" for name, value in record.params.items() if value != ""]
    if record.trust.completeness_error is not None:
        said.append(f"completeness error {percent(record.trust.completeness_error)}")
    if record.provenance.seconds is not None:
        said.append(f"computed in {seconds(record.provenance.seconds)}")
    return ", ".join(said)


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


DROWNED = 8.0
"""How many times larger a shared scale may be than a map's own before its colours say nothing any more."""


@dataclass(frozen=True)
class Scale:
    """Ends of a colour scale in a unit."""

    lo: float
    hi: float
    unit: str

    @property
    def reach(self) -> float:
        return max(abs(self.lo), abs(self.hi))

    @classmethod
    def of(cls, result: Mapping[str, Any] | None) -> Scale | None:
        legend = (result or {}).get("legend")
        return cls(legend["lo"], legend["hi"], legend.get("unit", "")) if legend else None


def common(scales: Sequence[Scale | None]) -> list[Scale | None]:
    """One scale for all maps of one unit and one kind of sign, unless the smallest of them would drown on it (DROWNED)."""

    def kind(s: Scale) -> tuple[str, bool]:
        return (s.unit, s.lo < 0)

    known = [s for s in scales if s is not None]
    shared: dict[tuple[str, bool], Scale] = {}
    for s in known:
        old = shared.get(kind(s), s)
        shared[kind(s)] = Scale(min(old.lo, s.lo), max(old.hi, s.hi), s.unit)
    apart = {kind(s) for s in known if DROWNED * s.reach < shared[kind(s)].reach}
    return [s if s is None or kind(s) in apart else shared[kind(s)] for s in scales]


def kept(record: wire.Explanation, told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the page remembers of a finished panel: small, JSON-able, enough to change its scale."""
    chosen = views.principal(record.artifacts)
    about = told[chosen.digest] if chosen else {}
    legend = about.get("legend") if chosen and chosen.kind in views.PICTURES else None
    return {
        "id": record.id,
        "job": record.job,
        "state": record.state,
        "trust": record.trust.state,
        "legend": legend,
        "artifact": chosen.model_dump(mode="json") if chosen else None,
    }
