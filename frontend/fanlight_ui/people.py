"""Who looks at these pages, and with whom: pure parts of Settings. What is done there is in `people_deeds`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.wire import Me, Member, Person, Workspace
from fanlight_ui.session import href
from fanlight_ui.views.numbers import when

WHERE = "workspace-to"
"""Type of the buttons that lead to another workspace; `workspace` is its id."""
DO, ROLE = "pp-do", "pp-role"
"""Types of the buttons that ask before they do something (`verb`, `who`), and of the choice of a role (`who`)."""
ROLES = (
    ("viewer", "viewer: looks at everything"),
    ("editor", "editor: asks, changes and shares too"),
    ("owner", "owner: keys, members and the log too"),
)


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
    if not me.workspace:
        inside.append(html.P("An owner of a workspace can add you to it: tell them your name.", className="quiet"))
    if me.name:
        out = html.Form(
            html.Button("Log out", className="button", type="submit"), action=href("/logout"), method="POST"
        )
        leave = deed("leave", me.workspace, f"Leave {me.workspace_name or me.workspace}") if me.role else None
        inside.append(html.Div([out, leave], className="row"))
    return html.Section(inside, className="card pad")


def deed(verb: str, who: str, words: str, about: str = "", **props: Any) -> Component:
    """A button that asks first. Args: about: whom it is about, for those who do not see the row."""
    inside = [words, html.Span(f" {about}", className="sr")] if about else words
    return html.Button(inside, id={"type": DO, "verb": verb, "who": who}, **{"className": "button small", **props})


def sure() -> Component:
    """The question before what cannot be taken back."""
    return dmc.Modal(
        [
            html.P(id="pp-words"),
            html.Div(
                [
                    html.Button("Keep it as it is", id="pp-no", className="button"),
                    html.Button("", id="pp-yes", className="button danger"),
                ],
                className="row end",
            ),
            dcc.Store(id="pp-what"),
        ],
        id="pp-sure",
        title="Are you sure?",
        closeButtonProps={"aria-label": "Close"},
        centered=True,
    )


def space(known: Workspace, me: Me) -> Component:
    """What the workspace has asked for, against what it may; its owners name it."""
    held = {
        "Unfinished jobs": share(known.jobs, known.most_jobs),
        "Unfinished work": share(known.cost, known.most_cost, " forward passes"),
        "Members": f"{known.members:,}",
    }
    if known.weight != 1:
        held["Turn"] = f"{known.weight} times that of others, where several wait"
    rows = [html.Div([html.Dt(name), html.Dd(value, className="num")]) for name, value in held.items()]
    inside: list[Component] = [html.H2("This workspace"), html.Dl(rows, className="facts")]
    if "admin" in me.scopes:
        field = dmc.TextInput(id="pp-name", label="Name", value=known.name, attributes={"input": {"maxLength": 100}})
        inside.append(fields("pp-rename", field, "Rename"))
    limits = "Only those who run the server set how much it may ask for."
    inside.append(html.P(limits, className="quiet"))
    return html.Section(inside, className="card pad")


def share(taken: int, most: int | None, unit: str = "") -> str:
    """Args: most: None where the limits of the server hold."""
    if not most:
        return f"{taken:,}{unit}, no quota"
    return f"{taken:,} of {most:,}{unit} ({min(100, round(100 * taken / most))} %)"


def fields(button: str, *inputs: Any) -> Component:
    """A form in a row, below each other on a phone. Args: button: its id; inputs: the fields, then its words."""
    *some, words = inputs
    parts = [*some, html.Button(words, id=button, className="button small")]
    return html.Div(parts, className="people-form", role="group", **{"aria-label": words})


def members(known: Sequence[Member], me: Me) -> Component:
    return html.Section(
        [html.H2("Members of this workspace"), html.Div(belonging(known, me), id="pp-members")], className="card pad"
    )


def belonging(known: Sequence[Member], me: Me) -> list[Component]:
    """Who belongs to the workspace, with their roles, and the form that adds somebody."""
    rows = [_member(m, me) for m in known]
    shown = (
        html.Ul(rows, className="people") if rows else html.P("Nobody: it is used with the token.", className="quiet")
    )
    add = fields(
        "pp-add",
        dmc.TextInput(
            id="pp-who", label="Name of an account", attributes={"input": {"maxLength": 64, "autoComplete": "off"}}
        ),
        dmc.Select(id="pp-as", label="Role", data=choices(), value="editor", allowDeselect=False),
        "Add to the workspace",
    )
    how = (
        "Somebody without an account gets one under Accounts."
        if me.operator
        else "Accounts are made by those who run the server."
    )
    return [shown, add, html.P(how, className="quiet")]


def choices() -> list[dict[str, str]]:
    return [{"value": role, "label": words} for role, words in ROLES]


def _member(m: Member, me: Me) -> Component:
    mine = me.principal == f"person:{m.person}"
    about = [html.Strong(m.name), " (you)" if mine else "", html.Span(f"since {when(m.since)}", className="quiet num")]
    if m.disabled:
        about.append(html.Span("closed", className="tag"))
    role = dmc.Select(
        id={"type": ROLE, "who": m.person},
        data=[{"value": r, "label": r} for r, _ in ROLES],
        value=m.role,
        size="sm",
        allowDeselect=False,
        **{"aria-label": f"Role of {m.name}"},
    )
    out = None if mine else deed("remove", m.person, "Remove", m.name)
    return html.Li([html.Div(about, className="who"), role, out])


def accounts(known: Sequence[Person], me: Me) -> Component:
    return html.Section([html.H2("Accounts"), html.Div(people(known, me), id="pp-accounts")], className="card pad")


def people(known: Sequence[Person], me: Me) -> list[Component]:
    """All of the server, for operators, and the form that makes one."""
    make = fields(
        "pp-make",
        dmc.TextInput(id="pp-login", label="Name", attributes={"input": {"maxLength": 64, "autoComplete": "off"}}),
        dmc.PasswordInput(
            id="pp-password", label="First password", attributes={"input": {"maxLength": 256, "autoComplete": "new-password"}}
        ),
        dmc.Select(
            id="pp-belongs", label="In this workspace", data=[*choices(), {"value": "none", "label": "not in it"}],
            value="viewer", allowDeselect=False,
        ),
        "Make the account",
    )  # fmt: skip
    note = "12 characters at least. Tell it to them yourself; they change it after they have logged in."
    return [html.Ul([_account(p, me) for p in known], className="people"), make, html.P(note, className="quiet")]


def _account(p: Person, me: Me) -> Component:
    where = ", ".join(f"{m.name} ({m.role})" for m in p.workspaces) or "in no workspace"
    seen = f"last here {when(p.seen)}" if p.seen else "never here yet"
    tags = [html.Span("operator", className="tag")] if p.operator else []
    tags += [html.Span("closed", className="tag")] if p.disabled else []
    about = [html.Strong(p.name), *tags, html.Span(f"{where}; {seen}", className="quiet")]
    turn = None
    if me.principal != f"person:{p.id}":
        turn = deed("open", p.id, "Open again", p.name) if p.disabled else deed("close", p.id, "Close", p.name)
    return html.Li([html.Div(about, className="who"), turn])
