"""`fanlight study`: two lists of words against each other, from the shell; `fanlight sweeps` lists, pauses, resumes and cancels it too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fanlight import wire
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.explain import parameters
from fanlight.cli.output import FAILED, Json, emit, goes_on, say
from fanlight.cli.sweep import watched
from fanlight.client import Client
from fanlight.drawing.sweep_page import counts


def study(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Id of a model that draws from words.")],
    first: Annotated[str, typer.Option(help="Words with commas, or the name of a file with one a line.")],
    second: Annotated[str, typer.Option(help="As --first.")],
    template: Annotated[str, typer.Option(help="The prompt; {a} and {b} stand for the two words.")] = "a {a} {b}",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Pictures of every pair: seeds 0, 1, ...")] = 1,
    method: Annotated[
        str | None, typer.Option(help="A method that compares two words.", show_default="the first that can")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(help="Parameter of the method as name=value; may be repeated.", show_default=False),
    ] = None,
    column: Annotated[str, typer.Option(help="What the table shows, for example redundant.")] = "interaction",
    rule: Annotated[Literal["min", "pointwise"], typer.Option(help="Of redundancy.")] = "min",
    name: Annotated[str, typer.Option(help="A name for people.", show_default=False)] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is over.")] = True,
    csv: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write every picture to this file.", show_default=False)
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Draw a picture for every pair of two lists and compare what the words say.

    The server does it as bulk work, whatever happens to this command; its page is printed.
    """
    with connect(url, token) as client:
        found = client.start_study(
            model, method or _able(client), listed(first), listed(second), template=template,
            seeds=range(seeds), params=parameters(param or []), name=name,
        )  # fmt: skip
        page = f"{client.url}/sweeps/{found.id}"
        if not wait:
            return emit(found) if as_json else typer.echo(f"{found.about}\n{page}")
        with goes_on(page):
            found = watched(client, found)
        made = client.study(found.id, column=column, rule=rule)
        if csv is not None:
            csv.write_bytes(client.study_csv(found.id, rule=rule))
            say(f"Wrote {csv}")
    if as_json:
        emit({"sweep": found, "study": made})
    else:
        typer.echo("\n".join([f"{found.name} ({found.state})", counts(found) + ".", *lines(made), made.about, page]))
    if found.state != "done" or not found.counts["succeeded"]:
        raise typer.Exit(FAILED)


def listed(given: str) -> list[str]:
    """Words with commas, or those of a file, one a line."""
    path = Path(given)
    text = path.read_text(encoding="utf-8").splitlines() if path.is_file() else given.split(",")
    return [w.strip() for w in text if w.strip()]


def _able(client: Client) -> str:
    named: list[str] = [e.name for e in client.explainers() if e.pairs]
    if not named:
        raise typer.BadParameter("this server has no method that compares two words", param_hint="--method")
    return named[0]


def lines(made: wire.Study) -> list[str]:
    """The table in letters: mean, half of its interval's width where there is one, and in brackets the mean over the table, 0 to 1."""
    title = next(c.title for c in made.columns if c.name == made.column)
    rows = [["", *made.second]]
    for word, cells in zip(made.first, made.cells, strict=True):
        rows.append([word, *(_said(c) for c in cells)])
    width = [max(len(r[n]) for r in rows) for n in range(len(rows[0]))]
    return [f"{title} (nat)", *("  ".join(v.ljust(w) for v, w in zip(r, width, strict=True)).rstrip() for r in rows)]


def _said(cell: wire.StudyCell) -> str:
    if cell.mean is None or cell.normalised is None:
        return "-"
    between = "" if cell.lo is None or cell.hi is None else f" {cell.lo:.2f} to {cell.hi:.2f}"
    return f"{cell.mean:.2f}{between} [{cell.normalised:.2f}]"
