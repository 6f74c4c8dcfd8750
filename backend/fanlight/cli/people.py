"""`fanlight people`: accounts, made, listed, given another password, disabled and removed by whoever runs the server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from fanlight import administration
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import Json, ListByDefault, emit, say, table
from fanlight.wire import Person

app = typer.Typer(cls=ListByDefault, help="Make an account, list them, change a password, disable or remove one.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name to log in with, or the id of the account.")]


def _password(name: str) -> str:
    """From a pipe, or asked for twice; never an argument, which other people of the machine can see."""
    if not os.isatty(0):
        return typer.get_text_stream("stdin").readline().rstrip("\r\n")
    return str(typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True))


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Letters, digits and . _ @ + -; no matter in which case.")],
    workspace: Annotated[
        list[str] | None,
        typer.Option(help="WORKSPACE or WORKSPACE=ROLE to belong to; may be given several times.", show_default="none"),
    ] = None,
    operator: Annotated[bool, typer.Option("--operator", help="May look after people and workspaces.")] = False,
    subject: Annotated[
        str | None, typer.Option(help="What the provider of identities calls them; then no password is asked for.")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make an account. The password is asked for, or read from a pipe."""
    with connect(url, token) as client:
        password = None if subject else _password(name)
        made = client.send(administration.create_person(name, password, operator, subject))
        for one in workspace or []:
            ident, _, role = one.partition("=")
            client.send(administration.appoint(ident, made.id, role or "editor"))
        made = next(p for p in client.send(administration.people()) if p.id == made.id)
    if as_json:
        return emit(made)
    where = belongs(made) if made.workspaces else "no workspace yet: fanlight workspaces add WORKSPACE " + made.name
    say(f"{made.name} can log in; {where}.")


@app.command("list")
def list_people(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """List the accounts."""
    with connect(url, token) as client:
        people = client.send(administration.people())
    if as_json:
        return emit(people)
    rows = [(p.name, _state(p), belongs(p), _day(p.created), _day(p.seen), p.id) for p in people]
    table(("name", "state", "workspaces", "made", "last login", "id"), rows, empty="There are no accounts.")


@app.command()
def passwd(name: Name, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Give an account another password; whoever is logged in with it is logged out."""
    with connect(url, token) as client:
        _done(
            client.send(administration.change_person(name, password=_password(name))), "has another password", as_json
        )


@app.command()
def link(
    name: Name,
    subject: Annotated[str, typer.Argument(help="What the provider calls this person; empty takes the link away.")],
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Let whoever the provider of identities means by SUBJECT log in as this account; it is logged out now."""
    with connect(url, token) as client:
        done = client.send(administration.change_person(name, subject=subject))
    _done(done, "logs in through the provider" if subject else "no longer logs in through the provider", as_json)


@app.command()
def disable(name: Name, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Close an account at once, with its sessions and the keys that it made."""
    with connect(url, token) as client:
        _done(client.send(administration.change_person(name, disabled=True)), "is shut out", as_json)


@app.command()
def enable(name: Name, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Open a disabled account again; its keys stay revoked."""
    with connect(url, token) as client:
        _done(client.send(administration.change_person(name, disabled=False)), "can log in again", as_json)


@app.command()
def remove(name: Name, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Remove an account; what the person computed stays."""
    with connect(url, token) as client:
        _done(client.send(administration.remove_person(name)), "is gone", as_json)


def _done(person: Person, what: str, as_json: bool) -> None:
    emit(person) if as_json else say(f"{person.name} {what}.")


def belongs(person: Person) -> str:
    return ", ".join(f"{m.workspace} ({m.role})" for m in person.workspaces)


def _state(person: Person) -> str:
    return "disabled" if person.disabled else "operator" if person.operator else "-"


def _day(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
