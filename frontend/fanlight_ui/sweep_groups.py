"""Groups of the maps of a sweep and their layout in two dimensions, as components."""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from fanlight.drawing.number import percent
from fanlight.wire import Cluster, Projection, SweepSummary
from fanlight_ui import session
from fanlight_ui.pictures import lazy
from fanlight_ui.views.numbers import score

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Told apart by people who do not see all colours (M. Okabe and K. Ito, 2002), readable on light and dark; a shape goes with each."""
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "x", "star")
SIGNS = ("●", "■", "◆", "▲", "✚", "▼", "✖", "★")
SHOWN = 6
ROWS = 200


def parts(found: SweepSummary) -> list[Component | None]:
    """The section of the groups, and that of the layout."""
    if found.clusters is None:
        return [html.P("The groups of maps are being made.", className="quiet", role="status")]
    c = found.clusters
    facts = [f"{c.n:,} maps, each reduced to {c.grid} × {c.grid} means of length 1; k-means"]
    if c.tried:
        tried = ", ".join(f"{k}: {v:.2f}" for k, v in c.tried.items())
        facts.append(f"the number of groups by the mean silhouette ({tried})")
        if c.measured_on < c.n:
            facts.append(f"measured on {c.measured_on:,} of them")
    if c.blank:
        facts.append(f"{c.blank:,} blank or unreadable ones left out")
    return [
        html.Section(
            [
                html.H2("Groups of maps that look alike"),
                html.P(
                    f"{c.sentence} Does a group look at something that should not matter? "
                    "Then the model may have found a shortcut."
                ),
                html.P("; ".join(facts) + ".", className="quiet"),
                html.Div([group(g) for g in c.items], className="groups"),
            ],
            className="of-sweep",
        )
        if c.items
        else html.P(c.sentence, className="quiet"),
        layout(found.projection) if found.projection is not None else None,
    ]


def group(g: Cluster) -> Component:
    """One group: its mean picture and mean map, what is in it, its most typical members."""
    named = ", ".join(f"{name} {n:,}" for name, n in g.common)
    facts = []
    if g.accuracy.value is not None:
        facts.append(f"{percent(g.accuracy.value)} of {g.accuracy.n:,} right")
    if g.faithfulness is not None:
        facts.append(f"faithfulness {score(g.faithfulness)}")
    facts.append(f"silhouette {g.silhouette:.2f}".replace("-", "−"))
    i = (g.number - 1) % len(SIGNS)
    members = [
        html.A(
            lazy(session.src(f"/api/v1/explanations/{m}/card.png"), f"Member {n} of group {g.number}"),
            href=session.href(f"/e/{m}"),
            **{"data-item": m},
        )
        for n, m in enumerate(g.members[:SHOWN], 1)
    ]
    return html.Article(
        [
            html.H3(
                [
                    html.Span(SIGNS[i], className="sign", style={"color": COLOURS[i]}, **{"aria-hidden": "true"}),
                    f" Group {g.number}: {g.size:,} {'map' if g.size == 1 else 'maps'}",
                ]
            ),
            html.Div(
                [
                    html.Figure(
                        [
                            html.Img(src=session.src(g.picture), alt=f"Mean of {g.pictured} pictures"),
                            html.Figcaption(f"mean of {g.pictured:,} pictures"),
                        ]
                    ),
                    html.Figure([html.Img(src=session.src(g.map), alt=g.where), html.Figcaption("mean map")]),
                ],
                className="means",
            ),
            html.P(g.where),
            html.P(" · ".join([named, *facts]), className="quiet num"),
            html.Div(members, className="members", **{"data-walk": f"group-{g.number}"}),
        ],
        className="card pad",
    )


def layout(p: Projection) -> Component:
    """Points that open their explanation, and the same as a table."""
    share = f"{percent(p.explained[0])} and {percent(p.explained[1])}"
    drawn = "" if len(p.points) == p.of else f" {len(p.points):,} of {p.of:,} are drawn."
    return html.Section(
        [
            html.H2("Maps side by side"),
            html.P(
                "Each point is a map; points that are near look alike. "
                f"The axes are the first two principal components, with {share} of the variance.{drawn}"
            ),
            html.Div(
                dcc.Graph(
                    id="sw-plot",
                    figure=figure(p),
                    config={"displayModeBar": False, "scrollZoom": False},
                    className="plot",
                ),
                className="card",
                role="img",
                **{"aria-label": "Maps on their first two principal components; the table below has the same points"},
            ),
            table(p),
        ],
        className="of-sweep",
    )


def figure(p: Projection) -> dict[str, Any]:
    """A Plotly figure: one trace per group, each with its colour and its shape."""
    traces = []
    for number in sorted({q.cluster for q in p.points}):
        inside = [q for q in p.points if q.cluster == number]
        i = (number - 1) % len(COLOURS)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"group {number}",
                "x": [q.x for q in inside],
                "y": [q.y for q in inside],
                "text": [
                    plain(f"{q.predicted}{' (wrong)' if q.outcome == 'wrong' else ''} · {q.name}") for q in inside
                ],
                "customdata": [q.explanation for q in inside],
                "hovertemplate": "%{text}<extra>group " + str(number) + "</extra>",
                "marker": {"color": COLOURS[i], "symbol": SHAPES[i], "size": 8, "opacity": 0.85},
            }
        )
    axis = {"zeroline": False, "showgrid": True, "gridcolor": "rgba(128,128,128,0.18)", "title": {"standoff": 8}}
    return {
        "data": traces,
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 56, "r": 16, "t": 12, "b": 56},
            "height": 420,
            "legend": {"orientation": "h", "y": 1.08, "x": 0},
            "xaxis": {**axis, "title": {"text": "first component"}},
            "yaxis": {**axis, "title": {"text": "second component"}},
            "hovermode": "closest",
            "dragmode": False,
        },
    }


def plain(text: str) -> str:
    """Plotly reads some HTML in its texts: what somebody named stays a name."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(p: Projection) -> Component:
    rows = [
        html.Tr(
            [
                html.Th(html.A(q.name or q.explanation, href=session.href(f"/e/{q.explanation}")), scope="row"),
                html.Td(str(q.cluster)),
                html.Td(q.predicted),
                html.Td(q.outcome or ""),
                html.Td(score(q.faithfulness) if q.faithfulness is not None else ""),
                html.Td(f"{q.x:.2f}".replace("-", "−")),
                html.Td(f"{q.y:.2f}".replace("-", "−")),
            ]
        )
        for q in p.points[:ROWS]
    ]
    heads = ("Picture", "Group", "Predicted", "Outcome", "Faithfulness", "First", "Second")
    more = html.P(f"The first {ROWS} of {p.of:,}; the CSV has all.", className="quiet") if p.of > ROWS else None
    return html.Details(
        [
            html.Summary("The same as a table"),
            html.Div(
                html.Table([html.Thead(html.Tr([html.Th(h, scope="col") for h in heads])), html.Tbody(rows)]),
                className="scroll",
                tabIndex=0,
                role="region",
                **{"aria-label": "Maps with their group and place"},
            ),
            more,
        ],
        className="disclosure",
    )
