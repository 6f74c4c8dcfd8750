"""The `fanlight` command: a server, and the verbs of the client for the shell."""

from __future__ import annotations

import typer

from fanlight.cli import (
    bench,
    datasets,
    doctor,
    explain,
    keys,
    maintain,
    models,
    pages,
    people,
    prototypes,
    serve,
    share,
    study,
    sweep,
    workspaces,
)
from fanlight.cli.output import EXIT_CODES, Commands
from fanlight.cli.worker import worker

app = typer.Typer(
    cls=Commands,
    help="Explanations of neural networks: compute, look, change, share.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("serve")(serve.serve)
app.command("pages")(pages.pages)
app.command("worker")(worker)
app.command("doctor")(doctor.doctor)
app.add_typer(keys.app, name="keys")
app.add_typer(people.app, name="people")
app.add_typer(workspaces.app, name="workspaces")
app.command("audit")(keys.audit)
app.command("backup")(maintain.backup)
app.command("restore")(maintain.restore)
app.command("gc")(maintain.gc)
app.add_typer(models.app, name="models")
app.add_typer(datasets.app, name="datasets")
app.command("explain")(explain.explain)
app.command("sweep")(sweep.sweep)
app.add_typer(sweep.app, name="sweeps")
app.command("study")(study.study)
app.add_typer(prototypes.app, name="prototypes")
app.add_typer(share.app, name="share")
app.command("bench")(bench.bench)


def main() -> None:
    app(prog_name="fanlight")
