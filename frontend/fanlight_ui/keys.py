"""Keys of programs and the log of deeds: pure parts of Settings, for owners."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.wire import AuditEntry, Key, NewKey
from fanlight_ui.people import deed, fields
from fanlight_ui.views.numbers import when

SCOPES = (("read", "look"), ("explain", "ask and change"), ("share", "share"), ("admin", "keys, members and the log"))
ENDS = (("7", "after a week"), ("30", "after a month"), ("365", "after a year"), ("never", "never"))
SHOWN = 30
"""Entries of the log on the page."""


def section(known: Sequence[Key]) -> Component:
    return html.Section([html.H2("Keys of programs"), html.Div(inside(known), id="pp-keys")], className="card pad")


def inside(known: Sequence[Key], made: NewKey | None = None) -> list[Component | None]:
    """Which programs may do what here, and the form that makes a key. Args: made: just now; it is shown this once."""
    rows = [row(k) for k in sorted(known, key=lambda k: (standing(k).startswith(("revoked", "over")), -k.created))]
    shown = html.Ul(rows, className="people") if rows else html.P("There are none.", className="quiet")
    make = fields(
        "pp-key",
        dmc.TextInput(id="pp-key-name", label="What it is for", attributes={"input": {"maxLength": 100}}),
        dmc.MultiSelect(
            id="pp-scopes", label="What it may", data=[{"value": s, "label": w} for s, w in SCOPES], value=["read"]
        ),
        dmc.Select(
            id="pp-ends", label="It ends", data=[{"value": d, "label": w} for d, w in ENDS], value="30", allowDeselect=False
        ),
        "Make a key",
    )  # fmt: skip
    return [fresh(made) if made else None, shown, make]


def fresh(made: NewKey) -> Component:
    return html.Div(
        [
            html.Strong(f"The key “{made.name}”"),
            html.P("It is shown this once: copy it now. Whoever has it can do what it may."),
            html.Div(
                [
                    html.Code(made.key, id="pp-secret", className="secret"),
                    dcc.Clipboard(target_id="pp-secret", className="button small", title="Copy the key"),
                ],
                className="row",
            ),
        ],
        className="notice good",
        role="status",
    )


def row(key: Key) -> Component:
    state = standing(key)
    ended = state.startswith(("revoked", "over"))
    until = "" if ended else f"; until {when(key.expires)}" if key.expires else "; without an end"
    about = [
        html.Strong(key.name),
        html.Span(f"{', '.join(key.scopes)}; {state}{until}; id {key.id}", className="quiet"),
    ]
    return html.Li([html.Div(about, className="who"), None if ended else deed("revoke", key.id, "Revoke", key.name)])


def standing(key: Key, now: float | None = None) -> str:
    if key.revoked is not None:
        return f"revoked {when(key.revoked)}"
    if key.expires is not None and key.expires < (time.time() if now is None else now):
        return f"over since {when(key.expires)}"
    return f"last used {when(key.used)}" if key.used is not None else "never used"


def log(entries: Sequence[AuditEntry]) -> Component:
    """Who did what here, newest first."""
    rows = [
        html.Tr(
            [
                html.Td(when(e.time), className="num"),
                html.Td(e.who or e.principal),
                html.Td(e.action),
                html.Td([e.subject, html.Span(_detail(e), className="quiet")]),
            ]
        )
        for e in entries
    ]
    head = html.Thead(html.Tr([html.Th(words, scope="col") for words in ("When", "Who", "What", "Which")]))
    shown = html.Div(
        html.Table([head, html.Tbody(rows)]), className="scroll", tabIndex="0", role="region", **{"aria-label": "Log"}
    )
    more = html.P(["The last ", str(SHOWN), "; ", html.Code("fanlight audit"), " shows all of it."], className="quiet")
    return html.Details(
        [html.Summary("What was done here"), shown if rows else html.P("Nothing yet."), more], className="card pad log"
    )


def _detail(entry: AuditEntry) -> str:
    told = "; ".join(f"{k} {v if isinstance(v, str) else json.dumps(v)}" for k, v in entry.detail.items())
    return f" {told}" if told else ""
