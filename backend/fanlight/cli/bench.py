"""`fanlight bench`: measurements as commands. One module of `fanlight.bench` each."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated, Any

import typer

from fanlight.cli.output import FAILED, Json, emit, table
from fanlight.errors import unknown


def names() -> list[str]:
    """The benchmarks there are; a module with a leading underscore is a part of others."""
    package = importlib.import_module("fanlight.bench")
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


def bench(
    name: Annotated[str | None, typer.Argument(help="Which one.", show_default=False)] = None,
    options: Annotated[
        list[str] | None, typer.Argument(help="Options of the benchmark, after --.", show_default=False)
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    as_json: Json = False,
) -> None:
    """Run a benchmark; one that misses a stated target fails."""
    known = names()
    if show or name is None:
        found = [{"name": n, "measures": first_line(n)} for n in known]
        if as_json:
            return emit(found)
        return table(
            ("name", "measures"), [tuple(f.values()) for f in found], empty="This installation has no benchmarks."
        )
    if name not in known:
        raise typer.BadParameter(
            f"{unknown('benchmark', name, known).message} There are: {', '.join(known) or 'none'}."
        )
    figures: dict[str, Any] = importlib.import_module(f"fanlight.bench.{name}").run(options or [])
    if as_json:
        emit(figures)
    else:
        table(("figure", "value"), figures.items(), empty="Nothing was measured.")
    if figures.get("passed") is False:
        raise typer.Exit(FAILED)


def first_line(name: str) -> str:
    return (importlib.import_module(f"fanlight.bench.{name}").__doc__ or "").strip().split("\n")[0]
