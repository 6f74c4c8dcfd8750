"""`fanlight datasets`: the data sets of a server."""

from __future__ import annotations

import typer

from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import Json, ListByDefault, emit, table

app = typer.Typer(cls=ListByDefault, help="List the data sets of a server. FANLIGHT_DATASETS registers folders.")


@app.callback()
def datasets() -> None:
    """A callback, so that typer keeps `list` a command of a group."""


@app.command("list")
def list_datasets(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """The data sets of a server."""
    with connect(url, token) as client:
        found = client.datasets()
    if as_json:
        return emit(found)
    rows = [(d.name, d.version, d.count, d.unreadable, d.id) for d in found]
    table(
        ("name", "version", "samples", "unreadable", "id"),
        rows,
        empty="The server has no data sets. FANLIGHT_DATASETS names some.",
    )
