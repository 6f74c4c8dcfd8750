"""Who looks at these pages, and where: pure parts of Settings."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from fanlight.wire import Me, Member
from fanlight_ui.session import href
from fanlight_ui.views.numbers import when

WHERE = "workspace-to"
"""Type of the buttons that lead to another workspace; `workspace` is its id."""


def you(me: Me) -> Component:
    """Name, workspace and role; ways to other workspaces and out, where there is an account."""
    told = {"You are": me.name or me.principal, "Workspace": me.workspace_name or me.workspace or "none yet"}
    if me.role:
        told["Your role"] = me.role
    if me.operator:
        told["You may also"] = "look after people and workspaces"
    rows = [html.Div([html.Dt(name), html.Dd(value)]) for name, value in told.items()]
    inside: list[Component] = [html.H2("You"), html.Dl(rows, className="facts")]
    if len(me.workspaces) > 1:
        buttons = [
            html.Button(
                m.name,
                id={"type": WHERE, "workspace": m.workspace},
                className="pill",
                disabled=m.workspace == me.workspace,
                **{"aria-pressed": "true" if m.workspace == me.workspace else "false"},
            )
            for m in me.workspaces
        ]
        inside.append(html.Div(buttons, className="row", role="group", **{"aria-label": "Workspace"}))
        inside.append(html.P("What you see is of one workspace at a time.", className="quiet"))
    if me.name:
        out = html.Button("Log out", className="button", type="submit")
        inside.append(html.Form(out, action=href("/logout"), method="POST"))
    return html.Section(inside, className="card pad")


def members(known: Sequence[Member], workspace: str) -> Component:
    """Who belongs to the workspace. They are added and taken out in the shell, where owners have a key."""
    rows = [
        html.Div([html.Dt(m.name), html.Dd(f"{m.role}{', disabled' if m.disabled else ''}; since {when(m.since)}")])
        for m in known
    ]
    shown = (
        html.Dl(rows, className="facts") if rows else html.P("Nobody: it is used with the token.", className="quiet")
    )
    how = html.P(
        [html.Code(f"fanlight workspaces add {workspace} NAME --role editor"), " adds somebody."], className="quiet"
    )
    return html.Section([html.H2("Members of this workspace"), shown, how], className="card pad")
