"""What the commands print: results on stdout (text or JSON), everything else on stderr, and how a command ends."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from fanlight.artifact import canonical
from fanlight.errors import FanlightError

FAILED, USAGE, NO_SERVER, REFUSED = 1, 2, 3, 4

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no server answers, 4 the server refused."

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Commands(TyperGroup):
    """A group whose errors are sentences and exit codes; `default` is the command that is meant when none is named."""

    default: str | None = None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.default and (not args or args[0] not in self.commands) and "--help" not in args[:1]:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FanlightError as error:
            complain(error)
            raise typer.Exit(exit_code(error)) from error


class ListByDefault(Commands):
    default = "list"


def exit_code(error: FanlightError) -> int:
    if error.code == "no_server":
        return NO_SERVER
    return REFUSED if 400 <= error.status < 500 or error.status == 503 else FAILED


def complain(error: FanlightError) -> None:
    """The error as sentences on stderr."""
    allowed = error.allowed
    if isinstance(allowed, Mapping):
        allowed = [f"{name} {value}" for name, value in allowed.items()]
    if isinstance(allowed, Sequence) and not isinstance(allowed, str):
        allowed = ", ".join(map(str, allowed))
    lines = [error.message, f"Allowed: {allowed}" if allowed is not None else None, error.hint]
    say("\n".join(line for line in lines if line))


def say(message: str) -> None:
    """To the person, not into a pipe."""
    typer.echo(message, err=True)


def emit(value: Any) -> None:
    """`value` as JSON on stdout, numbers in full."""
    typer.echo(canonical(plain(value)).decode())


def plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Rows under their headings on stdout, or a sentence where there are none."""
    shown = [[str(cell) for cell in row] for row in rows]
    if not shown:
        typer.echo(empty)
        return
    drawn = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in shown:
        drawn.add_row(*row)
    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False, markup=False).print(drawn)


def part(module: str, extra: str) -> Any:
    """A module that only some installations have; a sentence where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        if e.name is None or e.name.split(".")[0].startswith("fanlight"):
            raise
        raise FanlightError(
            f"This command needs the package {e.name}, which is not installed here.",
            code="not_installed",
            hint=f"pip install 'fanlight[{extra}]'",
        ) from e


@contextmanager
def goes_on(page: str) -> Iterator[None]:
    """Around waiting for the server: who breaks it off is told that the work itself goes on."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"It goes on without this command: {page}")
        raise
