"""`fanlight workspaces`: groups whose work is their own; who belongs to them, with which role, and how much they may ask for."""

from __future__ import annotations

from typing import Annotated

import typer

from fanlight import administration
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import Json, ListByDefault, emit, say, table
from fanlight.wire import Workspace

app = typer.Typer(cls=ListByDefault, help="Make a workspace, list them, add and remove members, set quotas.")

Which = Annotated[str, typer.Argument(metavar="WORKSPACE", help="Its id.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name or the id of an account.")]


@app.command()
def create(
    workspace: Annotated[str, typer.Argument(help="Its id: small letters, digits and -.")],
    title: Annotated[str | None, typer.Option(help="What people read.", show_default="the id")] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="A data set of the server to offer in it.", show_default="those that come with Fanlight"),
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make an empty workspace."""
    with connect(url, token) as client:
        made = client.send(administration.create_workspace(workspace, title or workspace, dataset))
    if as_json:
        return emit(made)
    say(f"Workspace {made.id} is there; `fanlight workspaces add {made.id} NAME --role owner` gives it an owner.")


@app.command("list")
def list_workspaces(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """List the workspaces, with what they have asked for."""
    with connect(url, token) as client:
        found = client.send(administration.workspaces())
    if as_json:
        return emit(found)
    rows = [(w.id, w.name, str(w.members), _of(w.jobs, w.most_jobs), _of(w.cost, w.most_cost)) for w in found]
    table(("id", "name", "members", "unfinished jobs", "forward passes"), rows, empty="There are none.")


@app.command()
def members(workspace: Which, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """List who belongs to a workspace."""
    with connect(url, token) as client:
        found = client.send(administration.members(workspace))
    if as_json:
        return emit(found)
    rows = [(m.name, m.role, "disabled" if m.disabled else "") for m in found]
    table(("name", "role", ""), rows, empty="Nobody belongs to it.")


@app.command()
def add(
    workspace: Which,
    name: Name,
    role: Annotated[
        str, typer.Option(help="viewer: look; editor: ask, change and share too; owner: keys, members and the log too.")
    ] = "editor",
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Add a person, or give them another role."""
    with connect(url, token) as client:
        member = client.send(administration.appoint(workspace, name, role))
    emit(member) if as_json else say(f"{member.name} is {member.role} of {workspace}.")


@app.command()
def remove(workspace: Which, name: Name, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Take a person out; the keys that they made in it end."""
    with connect(url, token) as client:
        member = client.send(administration.dismiss(workspace, name))
    emit(member) if as_json else say(f"{member.name} belongs to {workspace} no more.")


@app.command()
def quota(
    workspace: Which,
    jobs: Annotated[int | None, typer.Option(min=0, help="Most unfinished jobs; 0: no quota.")] = None,
    cost: Annotated[
        int | None, typer.Option(min=0, help="Most unfinished work in forward passes; 0: no quota.")
    ] = None,
    weight: Annotated[
        int | None, typer.Option(min=1, max=100, help="Its share of the time where several wait; all have 1.")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Say how much a workspace may ask for at a time, and its share of the time; without an option, show it."""
    changes = {k: v for k, v in {"most_jobs": jobs, "most_cost": cost, "weight": weight}.items() if v is not None}
    with connect(url, token) as client:
        call = administration.change_workspace(workspace, **changes) if changes else administration.workspace(workspace)
        found: Workspace = client.send(call)
    if as_json:
        return emit(found)
    taken = f"{_of(found.jobs, found.most_jobs)} unfinished jobs, {_of(found.cost, found.most_cost)} forward passes"
    say(f"{taken}; weight {found.weight}.")


@app.command()
def offer(
    workspace: Which,
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Id of a data set of the server.")],
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make a data set of the server readable in a workspace."""
    with connect(url, token) as client:
        found = client.send(administration.offer(workspace, dataset))
    emit(found) if as_json else say(f"{found.name} can read {dataset}.")


def _of(taken: int, most: int | None) -> str:
    return f"{taken:,}" + (f" of {most:,}" if most is not None else "")
