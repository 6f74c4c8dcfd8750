"""`fanlight keys`: keys for programs, made, listed, revoked; `fanlight audit`: who did what."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from fanlight import administration
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import Json, ListByDefault, emit, say, table
from fanlight.wire import Key

app = typer.Typer(cls=ListByDefault, help="Make a key for a program, list keys, revoke one.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="read, explain, share or admin, which includes the others; may be given several times.",
            show_default="read",
        ),
    ] = None,
    days: Annotated[int | None, typer.Option(min=1, max=3650, help="Days it lives.", show_default="for ever")] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make a key. It is shown once."""
    with connect(url, token) as client:
        made = client.send(administration.create_key(name, scope or ["read"], days))
    if as_json:
        return emit(made)
    typer.echo(made.key)
    say(
        f"Key {made.id} may {', '.join(made.scopes)}. It is not shown again; `fanlight keys revoke {made.id}` closes it."
    )


@app.command("list")
def list_keys(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """List the keys, the revoked ones too."""
    with connect(url, token) as client:
        keys = client.send(administration.keys())
    if as_json:
        return emit(keys)
    rows = [(k.id, k.name, ", ".join(k.scopes), state(k), _day(k.created), _day(k.used)) for k in keys]
    table(("id", "name", "may", "state", "made", "last used"), rows, empty="There are no keys.")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False, url: Url = None, token: Token = None
) -> None:
    """Close a key for good."""
    with connect(url, token) as client:
        revoked = client.send(administration.revoke_key(key))
    emit(revoked) if as_json else say("The key opens nothing any more.")


def audit(
    action: Annotated[str, typer.Option(help="Only actions that begin so, such as share.", show_default="all")] = "",
    subject: Annotated[str, typer.Option(help="Only what was done to this id.", show_default="all")] = "",
    who: Annotated[str, typer.Option(help="Only what this person did, or key:ID.", show_default="all")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="Entries, the newest first.")] = 50,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Say who did what to which record, and when; newest first."""
    with connect(url, token) as client:
        page = client.send(administration.audit(action=action, subject=subject, who=who, limit=limit))
    if as_json:
        return emit(page.items)
    rows = [
        (
            _moment(e.time),
            e.who or e.principal,
            e.workspace or "server",
            e.action,
            e.subject,
            json.dumps(e.detail) if e.detail else "",
        )
        for e in page.items
    ]
    table(("when (UTC)", "who", "where", "what", "which", ""), rows, empty="Nothing was done yet.")


def state(key: Key) -> str:
    if key.revoked is not None:
        return "revoked"
    return "over" if key.expires is not None and key.expires < time.time() else "live"


def _day(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
