"""World `/data/{id}/world`: what is known of a data set that Fanlight drew itself."""

from __future__ import annotations

import asyncio
from typing import Any

import dash
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.drawing.parts import colour
from fanlight.wire import Page, Sample, World
from fanlight_ui import errors, session
from fanlight_ui.pictures import lazy

dash.register_page(__name__, path_template="/data/<id>/world", title="What is known · Fanlight")

SAMPLES = 8
SIZE = 320


@errors.page
async def layout(id: str, **_address: Any) -> Component:
    found, page = await asyncio.gather(session.ask(calls.world(id)), session.ask(calls.samples(id, limit=SAMPLES)))
    return html.Main(
        [
            html.Div(
                [
                    html.H1(f"{found.name}: what is known"),
                    dcc.Link("Its pictures", href=session.href("/data", dataset=id), className="button end"),
                ],
                className="head",
            ),
            html.P(found.description, className="lead"),
            samples(found, page),
            kinds(found),
            groups(found),
            together(found),
        ],
        className="page known",
    )


def samples(w: World, page: Page[Sample]) -> Component:
    """Pictures beside what is where in them."""
    names = [
        html.Li(
            [html.B(str(n), className="part", style={"background": colour(n - 1)}), f" {name}"],
        )
        for n, name in enumerate(w.parts, 1)
    ]
    return html.Section(
        [
            html.H2(f"Parts: {len(w.parts)}"),
            html.P(
                "Every pixel of a bird belongs to one part. Leaves hide some; what is hidden has no number.",
                className="quiet",
            ),
            html.Ol(names, className="parts"),
            html.Div([pair(s) for s in page.items], className="pairs"),
        ],
        className="of-world",
    )


def pair(s: Sample) -> Component:
    seen = session.src(f"/api/v1/inputs/{s.input}/image.jpg?size={SIZE}")
    masks = session.src(f"/api/v1/datasets/{s.dataset}/samples/{s.position}/parts.png?size={SIZE}")
    return html.Figure(
        [
            dcc.Link(
                [lazy(seen, f"{s.label}, the picture"), lazy(masks, f"{s.label}, its visible parts in colours")],
                href=session.href("/explain", input=s.input, dataset=s.dataset),
            ),
            html.Figcaption(s.label or s.name),
        ]
    )


def table(heads: list[str], rows: list[Any], words: str) -> Component:
    return html.Div(
        html.Table([html.Thead(html.Tr([html.Th(h, scope="col") for h in heads])), html.Tbody(rows)]),
        className="scroll",
        tabIndex=0,
        role="region",
        **{"aria-label": words},
    )


def kinds(w: World) -> Component:
    """The table that every bird is drawn from."""
    rows = [
        html.Tr(
            [html.Th(k.name, scope="row"), html.Td(k.family), *[html.Td(k.typical[g.name]) for g in w.groups]],
        )
        for k in w.kinds
    ]
    return html.Section(
        [
            html.H2(f"Species: {len(w.kinds)} in {len(w.families)} families"),
            html.P(
                "What an adult male looks like in breeding season. Females, young birds and winter change several columns together; "
                "beyond that one bird in ten differs in a column, one in twenty-five in a shape.",
                className="quiet",
            ),
            table(["Species", "Family", *[g.name for g in w.groups]], rows, "Species and what is typical of them"),
        ],
        className="of-world",
    )


def groups(w: World) -> Component:
    """Concepts in groups of exclusive values, and where they are seen."""
    rows = [
        html.Tr(
            [
                html.Th(g.name, scope="row"),
                html.Td(", ".join(g.values)),
                html.Td(", ".join(g.parts) or "the whole bird"),
            ]
        )
        for g in w.groups
    ]
    count = sum(len(g.values) for g in w.groups)
    return html.Section(
        [
            html.H2(f"Concepts: {count} in {len(w.groups)} groups"),
            html.P("Values of a group exclude each other: a bird shows one of them.", className="quiet"),
            table(["Group", "Values", "Seen on"], rows, "Groups of concepts"),
        ],
        className="of-world",
    )


def together(w: World) -> Component:
    """How groups hang together, over all birds and given the picture."""
    names = [g.name for g in w.groups]
    rows = [
        html.Tr(
            [
                html.Th(name, scope="row"),
                *[
                    html.Td(
                        f"{100 * v:.0f}",
                        style={"--r": f"{v:.3f}"},
                        className="self" if i == j else "",
                        title=f"{name} and {names[j]}: {v:.2f}",
                    )
                    for j, v in enumerate(line)
                ],
            ]
        )
        for i, (name, line) in enumerate(zip(names, w.correlation, strict=True))
    ]
    pairs = [
        html.Tr(
            [
                html.Th(f"{p.first} and {p.second}", scope="row"),
                html.Td(f"{p.overall:.2f}"),
                html.Td(f"{p.remains:.2f}"),
            ]
        )
        for p in w.pairs
    ]
    return html.Section(
        [
            html.H2("How concepts hang together"),
            html.P(
                "The largest correlation, in hundredths and without its sign, between a concept of one group and one of another, over all birds.",
                className="quiet",
            ),
            html.Div(table(["", *names], rows, "Correlation of groups of concepts"), className="together num"),
            html.P(
                "In four pairs correlation remains when the picture is known, because leaves hide one of them: "
                f"what a stochastic bottleneck can use and an independent one cannot. Given {w.measured_on} pictures:",
            ),
            table(["Pair", "Over all birds", "Given the picture"], pairs, "Correlation that remains given the picture"),
        ],
        className="of-world",
    )
