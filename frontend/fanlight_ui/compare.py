"""The parts of the comparison's page, pure: records and what the server says of them -> components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import panels, views
from fanlight_ui.session import href
from fanlight_ui.views import base, numbers, prediction, trust

MOST = 4
OPACITY = 80
MAP_NAMES = {"a": "A: the first word", "b": "B: the second", "unique_a": "unique: A", "unique_b": "unique: B"}
MEANING = (
    "Rank correlation: +1 means that two maps put all places in the same order of evidence, 0 that their orders have nothing to do "
    "with each other, −1 that one is the other upside down. Agreement is no proof: two maps can share a fault."
)


@dataclass(frozen=True)
class Asked:
    """What the address says."""

    ids: tuple[str, ...] = ()
    own: bool = False
    opacity: int = OPACITY
    map: str = ""
    """Which of several maps of a result; empty for the one that the server takes."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """From an address that a person may have written: what cannot be read is left out."""
        ids = tuple(dict.fromkeys(t.strip() for t in query.get("ids", "").split(",") if t.strip()))[:MOST]
        given = query.get("opacity", "")
        opacity = min(100, int(given)) if given.isdecimal() and len(given) < 4 else OPACITY
        return cls(ids, query.get("scale") == "own", opacity, query.get("map", "")[:40])

    def to(self, ids: Sequence[str] | None = None, own: bool | None = None, map: str | None = None) -> str:
        """The address with other explanations, the other scale or another map."""
        own = self.own if own is None else own
        return href(
            "/compare",
            ids=",".join(self.ids if ids is None else ids),
            scale="own" if own else None,
            opacity=None if self.opacity == OPACITY else self.opacity,
            map=(self.map if map is None else map) or None,
        )


@dataclass(frozen=True)
class Found:
    """Everything that the page shows. `told`: of each record what the server says of its artifacts; `apart`: of the difference."""

    asked: Asked
    records: Sequence[wire.Explanation]
    told: Sequence[Mapping[str, Mapping[str, Any]]] = ()
    comparison: wire.Comparison | None = None
    apart: Mapping[str, Any] | None = None
    candidates: Sequence[wire.Explanation] = field(default_factory=tuple)


def scales(found: Found) -> tuple[list[panels.Scale | None], str]:
    """The scale of each map, and in words what that means for reading them side by side."""
    own = [_own(r, t) for r, t in zip(found.records, found.told, strict=True)]
    if found.asked.own:
        return own, "Each map has its own scale: compare places, not sizes."
    shared = panels.common(own)
    if len(set(shared)) == 1:
        return shared, "All maps are on one scale: equal colours are equal numbers."
    if len({s.unit for s in own if s}) > 1:
        return (
            shared,
            "Units differ, so the maps are normalised: only maps of one unit share a scale. Compare places, not sizes.",
        )
    return shared, "One scale would leave a map without colour, so each has its own: compare places, not sizes."


def _own(record: wire.Explanation, told: Mapping[str, Mapping[str, Any]]) -> panels.Scale | None:
    """The scale of its drawing; None for a kind that has none."""
    chosen = views.principal(record.artifacts)
    return panels.Scale.of(told[chosen.digest]) if chosen and chosen.kind in views.SCALED else None


def title(records: Sequence[wire.Explanation]) -> str:
    """By what differs."""
    for what, values in (
        ("methods", {r.explainer for r in records}),
        ("models", {r.model for r in records}),
        ("classes", {r.target_name for r in records}),
        ("pictures", {r.input for r in records}),
    ):
        if len(values) == len(records) > 1:
            return f"{len(records)} {what} compared"
    return f"{len(records)} explanations compared" if len(records) > 1 else "Compare with what?"


def page(found: Found) -> list[Component | None]:
    if len(found.records) < 2:
        return [head(found), choose(found, "Choose at least one other explanation.")]
    ends, words = scales(found)
    asked = found.asked
    switch = dcc.Link(
        "Each on its own scale" if not asked.own else "One scale per unit",
        href=asked.to(own=not asked.own),
        className="button small",
    )
    tools = html.Div(
        [
            switch,
            html.Label("opacity", htmlFor="cp-opacity"),
            dmc.Slider(
                id="cp-opacity",
                value=asked.opacity,
                min=0,
                max=100,
                step=5,
                label=None,
                size="sm",
                className="opacity",
                updatemode="drag",
                thumbLabel="Opacity of the maps",
            ),
            html.Output(
                "point at a map or use arrow keys: all are read at once",
                className="quiet num",
                **{"data-pixel": "1", "aria-live": "polite"},
            ),
        ],
        className="tools card",
    )
    slots = [slot(found, n, ends[n]) for n in range(len(found.records))]
    below = [agreement(found), apart(found)]
    linked = html.Div(
        [
            html.Div(slots, className="slots"),
            html.P(words, className="quiet"),
            tools,
            html.Div(below, className="below"),
        ],
        className="compare",
        **{"data-linked": "1"},
    )
    more = choose(found, "Add another one") if len(found.records) < MOST and found.candidates else None
    return [head(found), linked, more]


def head(found: Found) -> Component:
    records = found.records
    same = (
        {r.input_name or numbers.short(r.input, 8) for r in records} if len({r.input for r in records}) == 1 else set()
    )
    return html.Div([html.H1(title(records)), html.Span(" · ".join(same), className="quiet from")], className="head")


def slot(found: Found, n: int, ends: panels.Scale | None) -> Component:
    """One explanation: its number, its map on the given scale, what it says."""
    record, told = found.records[n], found.told[n]
    chosen = views.principal(record.artifacts)
    rest = [i for i in found.asked.ids if i != record.id]
    top = html.Div(
        [
            html.H2(
                [
                    html.Span(str(n + 1), className="number"),
                    dcc.Link(record.explainer_title, href=href(f"/e/{record.id}")),
                ]
            ),
            dcc.Link(
                "Remove", href=found.asked.to(ids=rest), className="quiet", title=f"Take {n + 1} out of the comparison"
            ),
        ],
        className="row",
    )
    if chosen is None or (ends is None and chosen.kind in views.SCALED):
        return html.Section([top, panels.ended(record)], className="card slot")
    about, scene = told[chosen.digest], base.Scene.of(record, slot=n)
    if ends is not None:
        about = {**about, "legend": {**about["legend"], "lo": ends.lo, "hi": ends.hi}}
        scene = base.Scene.of(record, slot=n, lo=ends.lo, hi=ends.hi)
    words = html.Div(
        [
            html.P(
                " · ".join(filter(None, (record.target_name, record.model_name, record.input_name))), className="quiet"
            ),
            trust.badge(record.trust),
            html.P(about["sentence"]),
            base.table(about),
        ],
        className="about",
    )
    return html.Section(
        [top, views.show(chosen, about, scene), words],
        className="card slot",
        **{"aria-label": f"{n + 1}: {record.explainer_title}"},
    )


def agreement(found: Found) -> Component | None:
    """The matrix, and what it means."""
    known = found.comparison
    if known is None:
        return None
    count = range(len(known.explanations))
    names = [f"{n + 1} {found.records[n].explainer_title}" for n in count]
    header = html.Tr([html.Td(), *(html.Th(str(n + 1), scope="col", title=names[n]) for n in count)])
    rows = [
        html.Tr(
            [
                html.Th(names[i], scope="row"),
                *(html.Td(_entry(known.agreement[i][j]), className="self" if i == j else None) for j in count),
            ]
        )
        for i in count
    ]
    over = (
        "over the part of the picture that all of them show"
        if known.same_picture
        else "by place in the frame, because the pictures differ"
    )
    return html.Section(
        [
            html.H2("How far they agree"),
            which(found, known),
            html.Div(
                html.Table([html.Thead(header), html.Tbody(rows)], className="agreement"),
                className="table",
                tabIndex=0,
                role="region",
                **{"aria-label": "Agreement"},
            ),
            html.P(known.sentence),
            html.P(f"{MEANING} Measured on {known.grid} × {known.grid} cells {over}.", className="quiet"),
        ],
        className="card pad",
    )


def which(found: Found, known: wire.Comparison) -> Component | None:
    """Of results that have several maps the one that is compared."""
    if known.map is None:
        return None
    links = []
    for name in known.maps:
        said: list[Any] = [MAP_NAMES.get(name, name.replace("_", " "))]
        here = name == known.map
        if here:
            said.append(html.Span(" (shown)", className="sr"))
        links.append(dcc.Link(said, href=found.asked.to(map=name), className="wd-pill here" if here else "wd-pill"))
    return html.Nav(
        [html.Span("Map", className="quiet"), *links], className="wd-kinds", **{"aria-label": "Which map is compared"}
    )


def _entry(value: float | None) -> str:
    return "none" if value is None else numbers.score(value)


def apart(found: Found) -> Component | None:
    """The difference of two, read together with them."""
    told = found.apart
    if told is None:
        return None
    first, second = found.records
    name = found.comparison.map if found.comparison else None
    chosen = views.principal(first.artifacts)
    drawn = found.told[0][chosen.digest].get("detail", {}).get("picture", "") if name and chosen else ""
    ref = wire.ArtifactRef(
        name="difference",
        kind=told["kind"],
        digest="",
        url=f"/api/v1/comparisons/{first.id}/{second.id}" + (f"?map={name}" if name else ""),
        unit=told["meta"]["unit"],
        meta=told["meta"],
    )
    return html.Section(
        [
            html.H2("First minus second"),
            views.show(ref, told, base.Scene(first.input, first.edits, slot=MOST, under=drawn)),
            html.P(told["sentence"]),
            base.table(told, "Difference as a table"),
        ],
        className="card pad",
    )


def _told_apart(e: wire.Explanation) -> list[str]:
    """What tells it from others of the same input: of a picture that a model drew also the seed, and whether it was changed."""
    seed = [f"seed {e.seed}"] if prediction.drawn(e) else []
    changed = ["changed"] if e.edits else []
    return [e.model_name, *seed, *changed, f"stored {numbers.when(e.created)}"]


def choose(found: Found, words: str) -> Component:
    """Other explanations of the same pictures, each a link that adds it."""
    items = [
        html.Li(
            [
                dcc.Link(f"{e.explainer_title} · {e.target_name}", href=found.asked.to(ids=[*found.asked.ids, e.id])),
                html.Span(" · ".join(_told_apart(e)), className="quiet"),
            ]
        )
        for e in found.candidates
    ]
    listed = (
        html.Ul(items, className="candidates")
        if items
        else html.P(
            ["Nothing else is stored of this picture. ", dcc.Link("Choose in the gallery", href=href("/")), "."]
        )
    )
    return html.Section([html.H2(words), listed], className="card pad", style={"marginTop": "16px"})
