"""Settings: how the pages look here, and the facts of the server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import dash
from dash import ALL, Input, Output, ctx, html, set_props
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight import administration
from fanlight.client import calls
from fanlight.wire import Key, System
from fanlight_ui import errors, people, session
from fanlight_ui.views.numbers import when

dash.register_page(__name__, path="/settings", title="Settings · Fanlight")

SCHEMES = (("auto", "As the system"), ("light", "Light"), ("dark", "Dark"))


@errors.page
async def layout(**_address: Any) -> Component:
    system, me = await session.ask(calls.system()), await session.ask(administration.me())
    owner = "admin" in me.scopes
    return html.Main(
        [
            html.Div(html.H1("Settings"), className="head"),
            html.Div(
                [
                    people.you(me),
                    appearance(),
                    tour(),
                    server(system),
                    facts("Versions", system.versions),
                    configured(system),
                    keys(await session.ask(administration.keys())) if owner else None,
                    people.members(await session.ask(administration.members(me.workspace)), me.workspace)
                    if owner
                    else None,
                ],
                className="stack",
            ),
        ],
        className="page narrow",
    )


def appearance() -> Component:
    """`assets/shell.js` marks the chosen one and keeps it in this browser."""
    buttons = [
        html.Button(words, className="pill", **{"data-scheme": value, "aria-pressed": "false"})
        for value, words in SCHEMES
    ]
    return html.Section(
        [
            html.H2("Light and dark"),
            html.Div(buttons, className="row", role="group", **{"aria-label": "Light and dark"}),
            html.P("Kept in this browser.", className="quiet"),
        ],
        className="card pad",
    )


def tour() -> Component:
    return html.Section(
        [html.H2("First steps"), html.Button("Show the tour again", id="tour-reset", className="button")],
        className="card pad",
    )


def server(s: System) -> Component:
    reach = "this machine only" if s.loopback and not s.public_url else s.public_url or "the network"
    return facts(
        "Server",
        {
            "Fanlight": s.version,
            "Computes on": s.device,
            "Numerics": s.numerics,
            "State": "ready" if s.ready else "starting",
            "Explanations": f"{s.explanations:,}",
            "Jobs": f"{s.running:,} running, {s.queued:,} waiting",
            "Reached from": reach,
        },
    )


CONFIGURED = {
    "max_upload_mb": ("Largest upload", "MiB"),
    "max_megapixels": ("Largest picture", "megapixels"),
    "share_days": ("A link lasts", "days, unless its maker chooses"),
    "job_deadline": ("A job may take", "s"),
    "throughput": ("Measured speed", "forward passes per second"),
}
"""Names and units of those that a person would not guess."""


def configured(s: System) -> Component | None:
    """As the server tells them: it leaves out what is secret."""
    told = {}
    for key, value in s.settings.items():
        name, unit = CONFIGURED.get(key, (key.replace("_", " ").capitalize(), ""))
        if value not in (None, "", {}, []):
            told[name] = f"{words(value)} {unit}".strip()
    return facts("Configuration", told)


def keys(known: list[Key]) -> Component:
    """Which programs may do what here. Keys are made and revoked in the shell, where a secret does not stay on a page."""
    rows = [html.Div([html.Dt(k.name), html.Dd(f"{', '.join(k.scopes)}; {standing(k)}; id {k.id}")]) for k in known]
    shown = html.Dl(rows, className="facts") if rows else html.P("There are none.", className="quiet")
    how = html.P([html.Code("fanlight keys create NAME --scope read"), " makes one."], className="quiet")
    return html.Section([html.H2("Keys of programs"), shown, how], className="card pad")


def standing(key: Key, now: float | None = None) -> str:
    if key.revoked is not None:
        return f"revoked {when(key.revoked)}"
    if key.expires is not None and key.expires < (time.time() if now is None else now):
        return f"over since {when(key.expires)}"
    return f"last used {when(key.used)}" if key.used is not None else "never used"


def words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {words(v)}" for k, v in value.items())
    return str(value)


def facts(title: str, rows: Mapping[str, str]) -> Component | None:
    if not rows:
        return None
    return html.Section(
        [
            html.H2(title),
            html.Dl([html.Div([html.Dt(name), html.Dd(value)]) for name, value in rows.items()], className="facts"),
        ],
        className="card pad",
    )


@dash.callback(
    Output({"type": people.WHERE, "workspace": ALL}, "title"),
    Input({"type": people.WHERE, "workspace": ALL}, "n_clicks"),
    prevent_initial_call=True,
)
async def switch(clicks: list[int | None]) -> list[str]:
    """Another workspace, from the first page on: the document is loaded again, so that nothing of the last one stays."""
    if not any(clicks) or not ctx.triggered_id:
        raise PreventUpdate
    me = await session.ask(administration.switch(ctx.triggered_id["workspace"]))
    set_props("_pages_location", {"refresh": True, "href": session.href("/")})
    return [f"You are in {me.workspace_name}." for _ in clicks]
