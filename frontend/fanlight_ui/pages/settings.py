"""Settings: how the pages look here, and the facts of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash
from dash import ALL, Input, Output, State, ctx, html, set_props
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight import administration
from fanlight.client import calls
from fanlight.wire import Me, System
from fanlight_ui import errors, keys, people, people_deeds, session

dash.register_page(__name__, path="/settings", title="Settings · Fanlight")

SCHEMES = (("auto", "As the system"), ("light", "Light"), ("dark", "Dark"))


@errors.page
async def layout(**_address: Any) -> Component:
    me = await session.ask(administration.me())
    system = await session.ask(calls.system()) if "read" in me.scopes else None
    return html.Main(
        [
            html.Div(html.H1("Settings"), className="head"),
            html.Div(
                [
                    people.you(me),
                    *await together(me),
                    appearance(),
                    tour(),
                    *(told(system) if system is not None else []),
                ],
                className="stack",
            ),
            people.sure(),
        ],
        className="page narrow",
    )


async def together(me: Me) -> list[Component]:
    """What is about the workspace and its people, as far as the visitor may see it."""
    shown: list[Component] = []
    if me.workspace:
        shown.append(people.space(await session.ask(administration.workspace(me.workspace)), me))
    if "admin" in me.scopes:
        shown.append(people.members(await session.ask(administration.members(me.workspace)), me))
        shown.append(keys.section(await session.ask(administration.keys())))
    if me.operator:
        shown.append(people.accounts(await session.ask(administration.people()), me))
    if "admin" in me.scopes:
        shown.append(keys.log((await session.ask(administration.audit(limit=keys.SHOWN))).items))
    return shown


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


def told(s: System) -> list[Component | None]:
    """The facts of the server, for whoever belongs to a workspace of it."""
    return [server(s), facts("Versions", s.versions), configured(s)]


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
    "word_model": ("Masked language model", ""),
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


dash.callback(
    Output("pp-sure", "opened"),
    Output("pp-what", "data"),
    Output("pp-words", "children"),
    Output("pp-yes", "children"),
    Input({"type": people.DO, "verb": ALL, "who": ALL}, "n_clicks"),
    Input("pp-no", "n_clicks"),
    prevent_initial_call=True,
)(people_deeds.ask_first)
dash.callback(
    Output("pp-sure", "opened", allow_duplicate=True),
    Input("pp-yes", "n_clicks"),
    State("pp-what", "data"),
    prevent_initial_call=True,
)(people_deeds.do)
dash.callback(
    Output("pp-members", "children"),
    Input("pp-add", "n_clicks"),
    State("pp-who", "value"),
    State("pp-as", "value"),
    prevent_initial_call=True,
)(people_deeds.add)
dash.callback(
    Output("pp-members", "children", allow_duplicate=True),
    Input({"type": people.ROLE, "who": ALL}, "value"),
    prevent_initial_call=True,
)(people_deeds.turn)
dash.callback(
    Output("pp-keys", "children"),
    Input("pp-key", "n_clicks"),
    State("pp-key-name", "value"),
    State("pp-scopes", "value"),
    State("pp-ends", "value"),
    prevent_initial_call=True,
)(people_deeds.make_key)
dash.callback(
    Output("pp-accounts", "children"),
    Input("pp-make", "n_clicks"),
    State("pp-login", "value"),
    State("pp-password", "value"),
    State("pp-belongs", "value"),
    prevent_initial_call=True,
)(people_deeds.make_account)
dash.callback(
    Output("pp-name", "value"),
    Input("pp-rename", "n_clicks"),
    State("pp-name", "value"),
    prevent_initial_call=True,
)(people_deeds.rename)
