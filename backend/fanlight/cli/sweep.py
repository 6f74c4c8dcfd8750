"""`fanlight sweep`: one method over a data set, from the shell; `fanlight sweeps`: what there is, pause, resume, cancel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fanlight import wire
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.explain import of_class, parameters
from fanlight.cli.output import FAILED, Json, ListByDefault, emit, goes_on, say, table
from fanlight.cli.trial import apply
from fanlight.client import Call, Client
from fanlight.drawing.sweep_page import counts, faithful, portion

OVER = ("done", "cancelled")
POLL = 0.5

app = typer.Typer(cls=ListByDefault, help="List the sweeps of a server; pause, resume or cancel one.")
app.command("apply")(apply)
Ident = Annotated[str, typer.Argument(metavar="ID")]


def sweep(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Id of a model; `fanlight models` lists them.")],
    method: Annotated[str, typer.Option(help="Name of a method, for example occlusion.")],
    dataset: Annotated[str, typer.Option(help="Id of a data set; `fanlight datasets` lists them.")],
    label: Annotated[str | None, typer.Option(help="Only samples with this label.", show_default=False)] = None,
    q: Annotated[
        str | None, typer.Option("--q", help="Only samples whose name or label has these words.", show_default=False)
    ] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only the first N.", show_default=False)] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="N drawn at random.", show_default=False)] = None,
    sample_seed: Annotated[int, typer.Option(min=0, help="Seed of --sample.")] = 0,
    rule: Annotated[
        Literal["predicted", "label"], typer.Option(help="Explain the predicted class, or the class of the label.")
    ] = "predicted",
    target: Annotated[
        str | None, typer.Option(help="Explain this class of every picture, by index or name.", show_default=False)
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(help="Parameter of the method as name=value; may be repeated.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of methods that draw random numbers.")] = 0,
    name: Annotated[str, typer.Option(help="A name for people.", show_default="method, model and data set")] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is over.")] = True,
    csv: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write every item to this file at the end.", show_default=False)
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Explain a whole data set by one method, on a running server.

    The server does it as bulk work, whatever happens to this command; its page is printed.
    """
    if first is not None and sample is not None:
        raise typer.BadParameter("goes without --first", param_hint="--sample")
    if target is not None and rule != "predicted":
        raise typer.BadParameter("goes without --rule: it is a rule itself", param_hint="--target")
    named = {"label": label, "q": q, "first": first, "sample": sample}
    part: dict[str, Any] = {k: v for k, v in named.items() if v is not None} | (
        {"sample_seed": sample_seed} if sample else {}
    )
    chosen: dict[str, Any] = {"rule": rule} if target is None else {"rule": "class", "target": of_class(target)}
    with connect(url, token) as client:
        found = client.start_sweep(
            model, method, dataset, **part, params=parameters(param or []), seed=seed, name=name, **chosen
        )
        page = f"{client.url}/sweeps/{found.id}"
        if not wait:
            return emit(found) if as_json else typer.echo(f"{found.about}\n{page}")
        with goes_on(page):
            found = watched(client, found)
        summary = client.sweep_summary(found.id, wait=30)
        if csv is not None:
            csv.write_bytes(client.send(Call("GET", f"/sweeps/{found.id}/export.csv", lambda r: r.content)))
            say(f"Wrote {csv}")
    if as_json:
        emit({"sweep": found, "summary": summary})
    else:
        typer.echo("\n".join([*sentences(found, summary), page]))
    if found.state != "done" or not found.counts["succeeded"]:
        raise typer.Exit(FAILED)


def watched(client: Client, found: wire.Sweep) -> wire.Sweep:
    """The sweep once it is over, or paused; progress, rate and time left are on stderr meanwhile."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(found.explainer, total=found.total, pace="")
        while found.state == "running":
            time.sleep(POLL)
            found = client.sweep(found.id)
            bar.update(task, completed=round(found.progress * found.total), pace=pace(found))
    return found


def pace(found: wire.Sweep) -> str:
    """How fast it is and how long it will take."""
    if found.rate is None or found.seconds_left is None:
        return ""
    return f"{found.rate:.2g} a second, about {found.seconds_left:.0f} s left"


def sentences(found: wire.Sweep, summary: wire.SweepSummary) -> list[str]:
    """What a person wants to read of it."""
    lines = [f"{found.name} ({found.state})", counts(found) + "."]
    if found.problem:
        lines.append(found.problem)
    if summary.accuracy.n:
        lines.append(portion(summary.accuracy, "labelled pictures right") + ".")
    lines.append(faithful(summary.faithful))
    if summary.clusters is not None:
        lines.append(summary.clusters.sentence)
        lines += [f"  group {c.number}: {c.size} maps. {c.where}" for c in summary.clusters.items]
    return lines


@app.callback()
def sweeps() -> None:
    """A callback, so that typer keeps `list` a command of a group."""


@app.command("list")
def list_sweeps(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """The sweeps of a server, newest first."""
    with connect(url, token) as client:
        found = client.sweeps(limit=200).items
    if as_json:
        return emit(found)
    rows = [(s.name, s.state, f"{100 * s.progress:.0f} %", s.total, s.id) for s in found]
    table(("name", "state", "progress", "pictures", "id"), rows, empty="There are no sweeps.")


@app.command()
def pause(ident: Ident, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Begin nothing further; what is being computed is finished."""
    _turned("pause_sweep", ident, as_json, url, token)


@app.command()
def resume(ident: Ident, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """Go on with a paused one."""
    _turned("resume_sweep", ident, as_json, url, token)


@app.command()
def cancel(ident: Ident, as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """End it for good; what is finished stays."""
    _turned("cancel_sweep", ident, as_json, url, token)


def _turned(verb: str, ident: str, as_json: bool, url: str | None, token: str | None) -> None:
    with connect(url, token) as client:
        found = getattr(client, verb)(ident)
    emit(found) if as_json else say(f"{found.name}: {found.state}; {counts(found)}.")
