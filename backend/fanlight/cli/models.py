"""`fanlight models`: what a server offers, and installing the bundles that packages bring the weights for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from fanlight import bundles
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import USAGE, Json, ListByDefault, emit, say, table
from fanlight.client import Call
from fanlight.errors import FanlightError

app = typer.Typer(cls=ListByDefault, help="List the models of a server, or install one.")


@app.command("list")
def list_models(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """The models of a server and the explainers that fit each."""
    with connect(url, token) as client:
        models = client.models()
        ready = bool(models) or client.send(Call("GET", "/system", lambda r: r.json()["ready"]))
    if as_json:
        return emit(models)
    empty = "The server has no models. FANLIGHT_MODELS names some."
    if not ready:
        empty = "The models are still being loaded; ask again in a few seconds."
    rows = [(m.name, m.task, m.id, ", ".join(e.name for e in m.explainers if e.available)) for m in models]
    table(("name", "task", "id", "explainers"), rows, empty=empty)


@app.command()
def install(
    name: Annotated[str, typer.Argument(help=f"For example {bundles.DEFAULT}.")],
    dest: Annotated[
        Path | None,
        typer.Option(help="Folder to put the bundle in, as a folder of its name.", show_default="this environment"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert published weights to a bundle.

    In a process of its own: the server never opens a pickle.
    """
    folder = (dest or bundles.folder()).resolve()
    command = [sys.executable, "-m", "fanlight_models.convert", name, str(folder)]
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    if code == USAGE:
        raise typer.Exit(USAGE)
    if code:
        raise FanlightError(f"{name} was not installed; the reason is above.", code="conversion_failed")
    if as_json:
        return emit({"bundle": str(folder / name)})
    if dest is not None:
        say(f"A server offers it with FANLIGHT_MODELS={folder / name}")
