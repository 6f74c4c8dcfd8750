"""`fanlight doctor`: what works, what it costs and what is wrong, in sentences."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fanlight.cli.output import FAILED, Json, emit, part, table
from fanlight.cli.serve import configured
from fanlight.doctor import Report
from fanlight.drawing.number import digits

MARKS = {"good": "ok", "warning": "note", "bad": "WRONG", "none": "-"}


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A bundle folder, a Python file, or a model of a library.", show_default="this installation"
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            min=1, max=600, help="Seconds in which to run the methods that fit; what takes longer is projected."
        ),
    ] = 120,
    service: Annotated[
        bool,
        typer.Option("--service", help="Examine the running server of these settings: database, queue, store, clock."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Examine this installation, or a model.

    Of a model: whether it loads, runs and repeats itself, which explainers work with it, what each costs, and why
    others do not. Each that fits is run once, at its defaults.
    """
    if service and model is not None:
        raise typer.BadParameter("name a model or --service, not both", param_hint="--service")
    if service:
        report: Report = part("fanlight.doctor.service", "all").examine(configured())
    elif model is None:
        report = part("fanlight.doctor.installation", "all").examine(configured())
    else:
        report = part("fanlight.doctor.model", "all").examine(model, seconds)
    if as_json:
        emit(report.json())
    else:
        show(report)
    if not report.sound:
        raise typer.Exit(FAILED)


def show(report: Report) -> None:
    rows = [(MARKS[c.outcome], c.name, f"{c.says} {c.hint}".strip()) for c in report.checks]
    table(("", "check", "found"), rows, empty="Nothing was looked at.")
    explainers = report.details.get("explainers", [])
    if explainers:
        typer.echo()
        columns = ("explainer", "passes", "seconds", "peak MiB", "")
        table(columns, [_cost(e) for e in explainers], empty="No explainers are installed.")


def _cost(e: dict[str, Any]) -> tuple[str, ...]:
    """A row: what the explainer costs at its defaults, here, or why it does not work."""
    if not e["available"] or e["error"]:
        return (e["name"], "-", "-", "-", e["reason"] or f"It failed: {e['error']}")
    peak = "-" if e["peak_mb"] is None else f"{e['peak_mb']:.0f}"
    return (e["name"], str(e["forwards"]), digits(e["seconds"], 2), peak, "" if e["measured"] else "projected")
