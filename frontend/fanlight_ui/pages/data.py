"""Data: the data sets and their samples. A click on one goes to the workbench with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import dash
from dash import Input, Output, State, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.errors import unknown
from fanlight.wire import Dataset, DatasetReading, Page, Sample
from fanlight_ui import errors, filters, session
from fanlight_ui.pictures import lazy

dash.register_page(__name__, path="/data", title="Data · Fanlight")

LIMIT = 60
CLOCK = 1000  # milliseconds between looks at what is being read
SHOWN = 12
NONE = "No data set is registered. Name picture folders in FANLIGHT_DATASETS (name=folder, separated by commas)."


@errors.page
async def layout(dataset: str = "", q: str = "", cursor: str = "", **_address: Any) -> Component:
    datasets, coming = await asyncio.gather(session.ask(calls.datasets()), session.ask(calls.datasets_reading()))
    head = html.Div(
        [html.H1("Data"), dcc.Link("Explain a picture of mine", href=session.href("/explain"), className="button end")],
        className="head",
    )
    waiting = [html.Div(being_read(coming), id="data-coming"), clock(bool(coming))]
    if not datasets:
        return html.Main([head, *waiting, *([] if coming else [html.P(NONE)])], className="page")
    shown = next((d for d in datasets if d.id == dataset), None) if dataset else datasets[0]
    if shown is None:
        raise unknown("dataset", dataset, [d.id for d in datasets])
    page, first = await asyncio.gather(
        session.ask(calls.samples(shown.id, cursor=cursor or None, limit=LIMIT, q=q or None)),
        session.ask(calls.samples(shown.id, limit=1)),
    )
    found = [about(shown), search(shown, q, page), samples(page), pager(shown, q, cursor, page)]
    main = html.Main([head, *waiting, *found])
    labels = [
        (f.label, f.count, session.href("/data", dataset=shown.id, q=None if q == f.value else f.value), q == f.value)
        for f in first.facets.get("label", [])
    ]
    sets = [(d.name, d.count, session.href("/data", dataset=d.id), d is shown) for d in datasets]
    aside = filters.foldable(
        "Data sets and labels", [choice("Data sets", sets), choice("Labels", labels) if labels else None]
    )
    return html.Div([aside, main], className="page gallery")


def being_read(coming: Sequence[DatasetReading], before: Sequence[str] = ()) -> list[Component]:
    """Data sets that are still being read, with their bars. Args: before: names of those that were so at the last look."""
    bars = [
        html.Div(
            [
                html.P(f"{d.name}: reading pictures, {d.done:,} of {d.total:,}.", role="status", className="num"),
                html.Progress(value=str(d.done), max=str(max(d.total, 1)), **{"aria-label": f"Reading {d.name}"}),
            ],
            className="card pad job",
        )
        for d in coming
    ]
    done = sorted(set(before) - {d.name for d in coming})
    if done:
        bars.insert(
            0, html.P([f"Read: {', '.join(done)}. ", html.A("Show", href=session.href("/data"))], role="status")
        )
    return [*bars, dcc.Store(id="data-coming-names", data=[d.name for d in coming] + done)]


def clock(running: bool) -> Component:
    return dcc.Interval(id="data-clock", interval=CLOCK, disabled=not running)


@dash.callback(
    Output("data-coming", "children"),
    Output("data-clock", "disabled"),
    Input("data-clock", "n_intervals"),
    State("data-coming-names", "data"),
    prevent_initial_call=True,
)
async def look(_count: int | None, names: list[str] | None) -> tuple[list[Component], bool]:
    coming = await session.ask(calls.datasets_reading())
    return being_read(coming, names or []), not coming


def choice(title: str, entries: Sequence[tuple[str, int, str, bool]]) -> Component:
    """A list of (name, how many, address, chosen); what is beyond a dozen is folded away."""
    items = [
        html.Li(
            dcc.Link(
                [
                    html.Span("✓" if chosen else "", className="tick", **{"aria-hidden": "true"}),
                    html.Span(name, className="label"),
                    html.Span(f"{count:,}", className="count"),
                ],
                href=href,
            ),
            className="chosen" if chosen else None,
        )
        for name, count, href, chosen in sorted(entries, key=lambda e: not e[3])
    ]
    rest = (
        html.Details([html.Summary("more …"), html.Ul(items[SHOWN:])], className="more") if len(items) > SHOWN else None
    )
    return html.Section([html.H2(title), html.Ul(items[:SHOWN]), rest])


def about(d: Dataset) -> Component:
    unreadable = f"{d.unreadable:,} unreadable" if d.unreadable else None
    facts = " · ".join(filter(None, [f"{d.count:,} pictures", unreadable, f"version {d.version}"]))
    terms = html.Details([html.Summary("Terms"), html.P(d.terms)], className="quiet") if d.terms else None
    swept = [
        dcc.Link("Explain all of it: a sweep", href=session.href("/sweeps/new", dataset=d.id)),
        " · ",
        dcc.Link("all sweeps", href=session.href("/sweeps")),
    ]
    if d.world:
        swept += [" · ", dcc.Link("what is known of it", href=session.href(f"/data/{d.id}/world"))]
    return html.Div(
        [html.H2(d.name), html.P(d.description), html.P(facts, className="quiet num"), html.P(swept), terms],
        className="intro",
    )


def search(d: Dataset, q: str, page: Page[Sample]) -> Component:
    found = f"{page.total:,}{'+' if page.total_is_floor else ''} found" if q else ""
    return html.Form(
        [
            dcc.Input(type="hidden", name="dataset", value=d.id, id="sample-dataset"),
            html.Label("Search by name or label", htmlFor="sample-q", className="sr"),
            dcc.Input(
                id="sample-q",
                name="q",
                type="search",
                value=q,
                placeholder="Search by name or label",
                autoComplete="off",
            ),
            html.Button("Search", type="submit", className="button"),
            html.Span(found, className="quiet num", role="status"),
        ],
        action=session.href("/data"),
        method="GET",
        className="row sample-search",
        **{"data-go": "true"},
    )


def samples(page: Page[Sample]) -> Component:
    if not page.items:
        return html.P("No picture fits.", className="blank")
    return html.Div([sample(s) for s in page.items], className="thumbs", **{"data-walk": "samples"})


def sample(s: Sample) -> Component:
    label = s.label or s.name
    return dcc.Link(
        [
            lazy(session.src(s.thumbnail)),
            html.Span(label, className="label", title=s.name),
            html.Span("explain", className="sr"),
        ],
        href=session.href("/explain", input=s.input, dataset=s.dataset),
        className="thumb item",
        id={"type": "sample", "position": s.position},
    )


def pager(d: Dataset, q: str, cursor: str, page: Page[Sample]) -> Component:
    first = (
        dcc.Link("First page", href=session.href("/data", dataset=d.id, q=q), className="button") if cursor else None
    )
    more = (
        dcc.Link("More", href=session.href("/data", dataset=d.id, q=q, cursor=page.next_cursor), className="button")
        if page.next_cursor
        else None
    )
    return html.Nav(
        [link for link in (first, more) if link is not None],
        className="pager",
        **{"aria-label": "Pages of the samples"},
    )
