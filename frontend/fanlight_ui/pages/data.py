"""Data: the data sets and their samples. A click on one goes to the workbench with it."""

from __future__ import annotations

from typing import Any

import dash
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.errors import unknown
from fanlight.wire import Dataset, Page, Sample
from fanlight_ui import errors, session
from fanlight_ui.pictures import lazy

dash.register_page(__name__, path="/data", title="Data · Fanlight")

LIMIT = 60
NONE = "No data set is registered. Name picture folders in FANLIGHT_DATASETS (name=folder, separated by commas)."


@errors.page
async def layout(dataset: str = "", q: str = "", cursor: str = "", **_address: Any) -> Component:
    datasets = await session.ask(calls.datasets())
    head = html.Div([html.H1("Data"), dcc.Link("Explain a picture of mine", href=session.href("/explain"), className="button end")], className="head")
    if not datasets:
        return html.Main([head, html.P(NONE)], className="page")
    shown = next((d for d in datasets if d.id == dataset), None) if dataset else datasets[0]
    if shown is None:
        raise unknown("dataset", dataset, [d.id for d in datasets])
    page = await session.ask(calls.samples(shown.id, cursor=cursor or None, limit=LIMIT, q=q or None))
    main = html.Main([head, about(shown), search(shown, q, page), samples(page), pager(shown, q, cursor, page)])
    return html.Div([chooser(datasets, shown), main], className="page gallery")


def chooser(datasets: list[Dataset], shown: Dataset) -> Component:
    items = [
        html.Li(
            dcc.Link(
                [html.Span("✓" if d is shown else "", className="tick", **{"aria-hidden": "true"}), html.Span(d.name, className="label"), html.Span(f"{d.count:,}", className="count")],
                href=session.href("/data", dataset=d.id),
            ),
            className="chosen" if d is shown else None,
        )
        for d in datasets
    ]
    return html.Aside(html.Section([html.H2("Data sets"), html.Ul(items)]), className="filters", **{"aria-label": "Data sets"})


def about(d: Dataset) -> Component:
    unreadable = f"{d.unreadable:,} unreadable" if d.unreadable else None
    facts = " · ".join(filter(None, [f"{d.count:,} pictures", unreadable, f"version {d.version}", d.terms]))
    return html.Div([html.H2(d.name), html.P(d.description), html.P(facts, className="secondary num")], className="intro")


def search(d: Dataset, q: str, page: Page[Sample]) -> Component:
    found = f"{page.total:,}{'+' if page.total_is_floor else ''} found" if q else ""
    return html.Form(
        [
            dcc.Input(type="hidden", name="dataset", value=d.id, id="sample-dataset"),
            html.Label("Search by name or label", htmlFor="sample-q", className="sr"),
            dcc.Input(id="sample-q", name="q", type="search", value=q, placeholder="Search by name or label", autoComplete="off"),
            html.Button("Search", type="submit", className="button"),
            html.Span(found, className="secondary num", role="status"),
        ],
        action=session.href("/data"),
        method="GET",
        className="row sample-search",
        **{"data-go": "true"},
    )


def samples(page: Page[Sample]) -> Component:
    if not page.items:
        return html.P("No picture fits.", className="blank")
    return html.Div([sample(s) for s in page.items], className="samples", **{"data-walk": "samples"})


def sample(s: Sample) -> Component:
    label = s.label or s.name
    return dcc.Link(
        [lazy(session.src(s.thumbnail)), html.Span(label, className="label", title=s.name), html.Span("explain", className="sr")],
        href=session.href("/explain", input=s.input, dataset=s.dataset),
        className="sample item",
        id={"type": "sample", "position": s.position},
    )


def pager(d: Dataset, q: str, cursor: str, page: Page[Sample]) -> Component:
    first = dcc.Link("First page", href=session.href("/data", dataset=d.id, q=q), className="button") if cursor else None
    more = dcc.Link("More", href=session.href("/data", dataset=d.id, q=q, cursor=page.next_cursor), className="button") if page.next_cursor else None
    return html.Nav([link for link in (first, more) if link is not None], className="pager", **{"aria-label": "Pages of the samples"})
