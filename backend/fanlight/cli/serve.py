"""`fanlight serve`: the whole of Fanlight in one process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from fanlight import collector
from fanlight.cli.output import part
from fanlight.settings import Settings

Host = Annotated[
    str | None,
    typer.Option(help="Address to bind. Anything but loopback needs FANLIGHT_TOKEN.", show_default="127.0.0.1"),
]
Port = Annotated[int | None, typer.Option(help="Port to bind; 0 picks a free one.", show_default="8321")]
RootPath = Annotated[
    str | None, typer.Option(help="Path prefix behind a proxy, for example /fanlight.", show_default=False)
]


def serve(
    host: Host = None,
    port: Port = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of the database, the artifacts and the token.", show_default="fanlight-data"),
    ] = None,
    root_path: RootPath = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ... or auto.", show_default="auto")] = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads of the compute worker; 0: all cores.", show_default="0")
    ] = None,
    isolate: Annotated[
        bool | None, typer.Option("--isolate/--no-isolate", help="Compute in a child process.", show_default="isolate")
    ] = None,
    examples: Annotated[
        bool | None,
        typer.Option("--examples/--no-examples", help="Compute the worked examples once.", show_default="examples"),
    ] = None,
    browser: Annotated[
        bool | None,
        typer.Option(
            "--browser/--no-browser", help="Open the page in a browser.", show_default="where there is a screen"
        ),
    ] = None,
) -> None:
    """Start Fanlight: API, pages and compute worker.

    Every setting is an environment variable FANLIGHT_* as well; an option wins over it. docs/settings.md lists them.
    """
    settings = configured(
        host=host,
        port=port,
        data_dir=data_dir,
        root_path=root_path,
        device=device,
        threads=threads,
        isolate=isolate,
        examples=examples,
    )
    collector.begin()
    raise typer.Exit(part("fanlight.app", "all").serve(settings, browser=has_screen() if browser is None else browser))


def configured(**options: Any) -> Settings:
    """Settings from the environment and the options that were given; what is out of range is wrong usage."""
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as e:
        first = e.errors()[0]
        name = str(first["loc"][0])
        raise typer.BadParameter(
            f"{first['msg']} (given: {first['input']!r})", param_hint=f"FANLIGHT_{name.upper()}"
        ) from e


def has_screen() -> bool:
    """Whether a browser would show a person something, rather than start as text in the log of a service."""
    graphical = sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return graphical and sys.stdout.isatty()
