"""Saved views beside the gallery's filters: open, keep what is shown, rename, delete and bring back; and the way to sweeps. Pure parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.wire import SavedView
from fanlight_ui import session
from fanlight_ui.query import Query

SHOWN = 8


def kept(given: Mapping[str, str]) -> dict[str, str]:
    """What a view holds of an address: all but the page of the list, and what is at its default."""
    defaults = {"sort": "newest", "view": "cards"}
    return {k: v for k, v in given.items() if k != "cursor" and defaults.get(k) != v}


def section(views: Sequence[SavedView], query: Query) -> Component:
    """The whole part. Its inside is replaced by what is done there."""
    asked = kept(query.given)
    return html.Section(
        [
            dcc.Store(id="gv-query", data=asked),
            html.H2("Saved views"),
            html.Div(inside(views, asked), id="gv"),
        ],
        className="views",
        **{"aria-label": "Saved views"},
    )


def inside(
    views: Sequence[SavedView],
    asked: Mapping[str, str],
    *,
    editing: str = "",
    deleted: SavedView | None = None,
    said: str = "",
) -> list[Component | None]:
    """Args: asked: what the gallery shows; editing: the view that is being renamed; deleted: that can be brought back; said: a refusal."""
    items = [row(v, dict(asked), v.id == editing) for v in views]
    more = html.Details([html.Summary("more …"), html.Ul(items[SHOWN:])], className="more") if items[SHOWN:] else None
    undo = None
    if deleted is not None:
        undo = html.P(
            [f"Deleted “{deleted.name}”. ", action("undo", deleted.id, "Undo", className="plain")],
            className="undo",
            role="status",
        )
    known = any(v.query == dict(asked) for v in views)
    return [
        html.Ul(items[:SHOWN]) if items else None,
        more,
        undo,
        html.P(said, className="undo wrong", role="alert") if said else None,
        keep() if asked and not known else None,
        html.P("Set filters, order or words; then you can keep them here under a name.", className="quiet")
        if not asked and not views
        else None,
    ]


def keep() -> Component:
    return html.Div(
        [
            dmc.TextInput(
                id="gv-name",
                placeholder="Name this view",
                size="sm",
                attributes={"input": {"maxLength": 100}},
                **{"aria-label": "Name of the view to save"},
            ),
            html.Button("Save", id="gv-save", className="button small"),
        ],
        className="row",
    )


def row(v: SavedView, asked: dict[str, str], editing: bool) -> Component:
    if editing:
        return html.Li(
            html.Div(
                [
                    dmc.TextInput(
                        id="gv-new-name",
                        value=v.name,
                        size="sm",
                        attributes={"input": {"maxLength": 100, "autoFocus": True}},
                        **{"aria-label": f"New name of {v.name}"},
                    ),
                    action("keep", v.id, "Save", className="button small"),
                    action("leave", v.id, "Cancel", className="plain"),
                ],
                className="row",
            )
        )
    chosen = v.query == asked
    link = dcc.Link(
        [
            html.Span("✓" if chosen else "", className="tick", **{"aria-hidden": "true"}),
            html.Span(v.name, className="label"),
            html.Span(" (shown now)", className="sr") if chosen else None,
        ],
        href=session.href("/", **v.query),
    )
    menu = html.Details(
        [
            html.Summary(
                [html.Span("⋯", **{"aria-hidden": "true"}), html.Span(f"Rename or delete {v.name}", className="sr")]
            ),
            html.Ul([html.Li(action("rename", v.id, "Rename")), html.Li(action("delete", v.id, "Delete"))]),
        ],
        className="menu",
        **{"data-menu": "view"},
    )
    return html.Li([link, menu], className="chosen" if chosen else None)


def action(verb: str, view: str, words: str, **props: str) -> Component:
    return html.Button(words, id={"type": "gv-do", "verb": verb, "view": view}, **props)


def sweep_links(query: Query) -> Component:
    """From a gallery to sweeps, and to a sweep of what it shows."""
    asked = {k: v for k, v in kept(query.given).items() if k != "view"}
    return html.P(
        [
            dcc.Link("Sweep these pictures", href=session.href("/sweeps/new", gallery="yes", **asked)),
            " · ",
            dcc.Link("all sweeps", href=session.href("/sweeps")),
        ],
        className="quiet",
    )
