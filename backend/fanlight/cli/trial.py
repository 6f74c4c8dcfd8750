"""`fanlight sweeps apply`: the same edits on every explanation of a sweep, and what becomes of the predictions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fanlight import wire
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import FAILED, Json, emit, goes_on, say
from fanlight.client import Client
from fanlight.drawing.sweep_page import portion
from fanlight.drawing.trial import changed

POLL = 0.3
CLASSES = 10


def apply(
    ident: Annotated[str, typer.Argument(metavar="SWEEP", help="Id of a sweep; `fanlight sweeps` lists them.")],
    edits: Annotated[
        list[str],
        typer.Argument(
            metavar="EDIT...",
            help='Edits as JSON, for example \'{"set_concept": {"concept": "bill shape::hooked", "value": "yes"}}\'.',
        ),
    ],
    label: Annotated[str | None, typer.Option(help="Only pictures with this label.", show_default=False)] = None,
    predicted: Annotated[
        str | None, typer.Option(help="Only pictures predicted as this class.", show_default=False)
    ] = None,
    outcome: Annotated[
        Literal["right", "wrong"] | None,
        typer.Option(help="Only pictures that the model has right, or wrong.", show_default=False),
    ] = None,
    q: Annotated[
        str | None, typer.Option("--q", help="Only pictures whose name or label has these words.", show_default=False)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is over.")] = True,
    csv: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write every picture to this file.", show_default=False)
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Try the same edits on every finished explanation of a sweep: does the model get better or worse?

    Answered from what is stored, as bulk work, whatever happens to this command. No record is changed.
    """
    where = {"label": label, "predicted": predicted, "outcome": outcome, "q": q}
    with connect(url, token) as client:
        found = client.start_trial(ident, [parsed(e) for e in edits], {k: v for k, v in where.items() if v is not None})
        page = f"{client.url}/sweeps/{ident}?trial={found.id}"
        if not wait:
            return emit(found) if as_json else typer.echo(f"{found.about}\n{page}")
        with goes_on(page):
            found = watched(client, found)
        summary = client.trial_summary(found.id)
        if csv is not None:
            csv.write_bytes(client.trial_csv(found.id))
            say(f"Wrote {csv}")
    if as_json:
        emit({"trial": found, "summary": summary})
    else:
        typer.echo("\n".join([*sentences(found, summary), page]))
    if found.state != "done" or not summary.n:
        raise typer.Exit(FAILED)


def parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"an edit is a JSON object with one key, not {text[:80]}", param_hint="EDIT")
    return found


def watched(client: Client, found: wire.Trial) -> wire.Trial:
    """The trial once it is over; its progress is on stderr meanwhile."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("trial", total=found.total)
        while found.state == "running":
            time.sleep(POLL)
            found = client.trial(found.id)
            bar.update(task, completed=found.total - found.counts["waiting"])
    return found


def sentences(found: wire.Trial, summary: wire.TrialSummary) -> list[str]:
    """What a person wants to read of it."""
    lines = [found.about]
    if found.state != "done":
        lines.append(f"It is {found.state}. {found.problem or ''}".strip())
    lines.append(
        f"{summary.moved:,} of {summary.n:,} predictions changed"
        + (f", {found.counts['failed']:,} could not be computed." if found.counts["failed"] else ".")
    )
    if summary.labelled:
        lines += [
            f"Before: {portion(summary.before, 'labelled pictures right')}.",
            f"After: {portion(summary.after, 'labelled pictures right')}.",
            changed(summary),
        ]
        lines += [
            f"  {c.name}: {c.gained} gained, {c.lost} lost, of {c.labelled}"
            for c in summary.classes[:CLASSES]
            if c.gained or c.lost
        ]
    return lines
