"""The gallery's filters, head and pager: links that change the address, with counts from the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dash import dcc, html
from dash.development.base_component import Component

from fanlight.wire import Explanation, Facet, Page
from fanlight_ui import session
from fanlight_ui.query import FILTERS, SORTS, Query

MINE = Facet(value="me", label="Mine", count=-1)
SHOWN = 6
"""Values of a filter before "more"."""


def panel(
    query: Query, facets: Mapping[str, Sequence[Facet]], first: Sequence[Component] = (), last: Sequence[Component] = ()
) -> Component:
    """The filters beside the list, between what else stands there; on a narrow page folded away behind their name."""
    groups = [group(query, name, facets.get(name, ())) for name in FILTERS]
    active = len(query.filters)
    return foldable(
        f"Filters · {active} set" if active else "Filters",
        [*first, *groups, *last, group(query, "owner", [MINE], "Owner")],
    )


def foldable(title: str, groups: Sequence[Component | None]) -> Component:
    """What stands beside a list. Open where there is room: `assets/shell.js` folds it on a narrow page."""
    inside = html.Details([html.Summary(title), *(g for g in groups if g is not None)], open=True, id="filters")
    return html.Aside(inside, className="filters", **{"aria-label": title})


def group(query: Query, name: str, facets: Sequence[Facet], title: str | None = None) -> Component | None:
    chosen = query.given.get(name)
    values = list(facets)
    if chosen is not None and chosen not in [f.value for f in values]:
        values.insert(0, Facet(value=chosen, label=chosen, count=0))
    if not values:
        return None
    values.sort(key=lambda f: f.value != chosen)
    items = [item(query, name, f, f.value == chosen) for f in values]
    rest = (
        [html.Details([html.Summary("more …"), html.Ul(items[SHOWN:])], className="more")] if len(items) > SHOWN else []
    )
    return html.Section([html.H2(title or FILTERS[name]), html.Ul(items[:SHOWN]), *rest], className=f"by-{name}")


def spoken(name: str, label: str) -> str:
    """A value as it stands in a list: with a capital, unless it is a name that somebody else gave."""
    return label if name in ("class", "tag", "owner", "sweep") else label[:1].upper() + label[1:]


def item(query: Query, name: str, facet: Facet, chosen: bool) -> Component:
    """A chosen value links to the list without it."""
    inside = [
        html.Span("✓" if chosen else "", className="tick", **{"aria-hidden": "true"}),
        html.Span(spoken(name, facet.label), className="label"),
        html.Span(" (chosen; press to take it out)", className="sr") if chosen else None,
        html.Span(f"{facet.count:,}", className="count") if facet.count >= 0 else None,
    ]
    link = dcc.Link([i for i in inside if i is not None], href=query.to(**{name: None if chosen else facet.value}))
    return html.Li(link, className="chosen" if chosen else None)


def head(query: Query, found: Page[Explanation], facets: Mapping[str, Sequence[Facet]], stored: int) -> Component:
    """Title, how many, what narrows it, order and view."""
    count = f"{found.total:,}{'+' if found.total_is_floor else ''}"
    of = f"{count} of {stored:,}" if query.filters else count
    labels = {(name, f.value): f.label for name, values in {**facets, "owner": [MINE]}.items() for f in values}
    chips = [chip(query, name, labels.get((name, value), value)) for name, value in query.filters.items()]
    other = "table" if query.view == "cards" else "cards"
    return html.Div(
        [
            html.H1("Explanations"),
            html.Span(of, className="quiet num"),
            *chips,
            html.Div(
                [
                    order(query),
                    dcc.Link(
                        f"Show as {other}", href=query.to(view=None if other == "cards" else other), className="pill"
                    ),
                    dcc.Link("Explain something", href=session.href("/explain"), className="button primary"),
                ],
                className="row end",
            ),
        ],
        className="head",
    )


def chip(query: Query, name: str, label: str) -> Component:
    said = f"“{label}”" if name == "q" else spoken(name, label)
    inside = [html.Span("Take out: ", className="sr"), said, html.Span(" ×", **{"aria-hidden": "true"})]
    return dcc.Link(inside, href=query.to(**{name: None}), className="chip")


def order(query: Query) -> Component:
    """A menu of links; `assets/shell.js` closes it again."""
    items = [
        html.Li(dcc.Link(words, href=query.to(sort=sort)), className="chosen" if sort == query.sort else None)
        for sort, words in SORTS.items()
    ]
    said = [
        html.Span("Order: ", className="sr"),
        SORTS.get(query.sort, query.sort),
        html.Span(" ▾", **{"aria-hidden": "true"}),
    ]
    return html.Details(
        [html.Summary(said, className="pill"), html.Ul(items)], className="menu", **{"data-menu": "order"}
    )


def pager(query: Query, found: Page[Explanation]) -> Component:
    first = dcc.Link("First page", href=query.to(), className="button") if "cursor" in query.given else None
    more = dcc.Link("More", href=query.to(cursor=found.next_cursor), className="button") if found.next_cursor else None
    return html.Nav(
        [link for link in (first, more) if link is not None], className="pager", **{"aria-label": "Pages of the list"}
    )


def nothing(query: Query) -> Component:
    told = [html.P("No explanation fits all of these filters.")]
    return html.Div(
        [
            *told,
            dcc.Link("Take all filters out", href=session.href("/", view=query.given.get("view")), className="button"),
        ],
        className="blank",
    )
