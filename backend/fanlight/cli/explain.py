"""`fanlight explain`: why did the model say so? For one picture, from the shell."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from fanlight import wire
from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import Json, emit, say
from fanlight.client import Call, Client, calls
from fanlight.drawing.number import output, signed
from fanlight.drawing.trust import edges_alone, rows

PENDING = ("pending", "running")


def explain(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A picture.")],
    model: Annotated[str, typer.Option(help="Id of a model; `fanlight models` lists them.")],
    explainer: Annotated[str, typer.Option(help="Name of a method, for example occlusion.")],
    target: Annotated[
        str | None, typer.Option(help="Class to explain, by index or name.", show_default="the top prediction")
    ] = None,
    minus: Annotated[
        str | None, typer.Option(help="Explain the difference of --target to this class.", show_default=False)
    ] = None,
    similar_to: Annotated[
        str | None,
        typer.Option(
            help="Explain the similarity to another picture: a file, or the id of an input.", show_default=False
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(help="Parameter of the method as name=value; may be repeated.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of methods that draw random numbers.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Folder for the record, the maps as PNG and their arrays.", show_default=False
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Wait until its faithfulness is measured, too; that follows the map by itself."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Measure it further and wait: stability, an untrained network, agreement. Implies --trust."
        ),
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait; the job goes on afterwards.")] = 600,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Explain what a model says of a picture, on a running server."""
    if minus is not None and target is None:
        raise typer.BadParameter("needs --target: the difference is --target minus --minus", param_hint="--minus")
    if similar_to is not None and target is not None:
        raise typer.BadParameter("goes without --target: it is a target itself", param_hint="--similar-to")
    chosen: Any = {"minus": [of_class(target), of_class(minus)]} if target and minus else of_class(target)
    params = parameters(param or [])
    with connect(url, token) as client:
        if similar_to is not None:
            other = Path(similar_to)
            chosen = {"similar_to": client.upload(other).id if other.is_file() else similar_to}
        record = watched(
            client, model, client.upload(file).id, explainer, target=chosen, params=params, seed=seed, timeout=timeout
        )
        if trust or check:
            record = trusted(client, record, timeout)
        if check:
            record = checked(client, record, timeout)
        if out is not None:
            save(client, record, out)
        page = f"{client.url}/e/{record.id}"
    if as_json:
        return emit(record)
    typer.echo(f"{sentences(record)}\n{page}")


def of_class(value: str | None) -> int | str | None:
    """A class by index where it is a number, else by name."""
    return int(value) if value is not None and value.isdecimal() else value


def parameters(pairs: list[str]) -> dict[str, Any]:
    """name=value pairs; a value is read as JSON where it is JSON, else as text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"expected name=value, got {pair!r}", param_hint="--param")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def watched(client: Client, model: str, input: str, explainer: str, **options: Any) -> wire.Explanation:
    """The finished explanation; place, progress and time left are on stderr meanwhile."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(explainer, total=1.0)
        for record in client.watch(model, input, explainer, **options):
            if isinstance(record, wire.Explanation):
                return record
            bar.update(task, completed=record.progress, description=f"{explainer}: {standing(record)}")
    raise AssertionError("watching ends with an explanation or an error")


def trusted(client: Client, record: wire.Explanation, timeout: float) -> wire.Explanation:
    """The record with its trust, as soon as that is measured, or as it is when the time is over."""
    client.send(calls.measure_trust(record.id))
    end = time.monotonic() + timeout
    while (record := client.explanation(record.id)).trust.state in PENDING and time.monotonic() < end:
        time.sleep(0.5)
    return record


def checked(client: Client, record: wire.Explanation, timeout: float) -> wire.Explanation:
    """The record with everything that can be measured of its map; what is measured and how far that is, is on stderr meanwhile."""
    offered = client.send(calls.measures(record.id))
    names = [m.name for m in offered if m.available]
    if not names:
        say(f"It cannot be checked further: {offered[0].reason}")
        return record
    took = sum(m.seconds or 0.0 for m in offered if m.available)
    say(f"Checking further: about {took:.0f} s")
    return client.check(record.id, names, timeout=timeout)


def standing(job: wire.Job) -> str:
    """Where a job is: its place in the queue, or what it does and how long it will take."""
    if job.place is not None:
        return f"{job.place} before it" if job.place else "next"
    left = f"about {job.seconds_left:.0f} s left" if job.seconds_left is not None else ""
    return ", ".join(part for part in (job.message, left) if part) or job.state


def save(client: Client, record: wire.Explanation, folder: Path) -> None:
    """The record as JSON; of each artifact the drawing and the arrays as the server keeps them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "explanation.json").write_text(record.model_dump_json(indent=2, by_alias=True) + "\n")
    for artifact in record.artifacts:
        for ending, path in (("png", "render.png"), ("safetensors", "raw")):
            blob = client.send(Call("GET", f"/artifacts/{artifact.digest}/{path}", lambda r: r.content))
            (folder / f"{artifact.name}.{ending}").write_bytes(blob)
    say(f"Saved in {folder}")


def sentences(record: wire.Explanation) -> str:
    """What a person wants to read of it."""
    lines = [f"{p.name}: {output(p.probability, p.logit, p.unit, 1)}" for p in record.prediction[:5]]
    lines += ["", f"{record.explainer_title} for {record.target_name}", record.summary, faithfulness(record.trust)]
    lines += [row.line for row in rows(record.trust) if row.name in record.trust.checks]
    lines += [f"Explanation {record.id}"]
    return "\n".join(lines)


def faithfulness(trust: wire.Trust) -> str:
    """How far to trust it, in a sentence."""
    if trust.state in PENDING:
        return "Its faithfulness is being measured; --trust waits for it."
    if trust.faithfulness is None or "faithfulness" not in (trust.interval or {}):
        return trust.reason or "Its faithfulness is not measured."
    band = trust.interval["faithfulness"]
    above = "above" if trust.above_floor else "not above"
    beside = f"; {edges_alone(trust)}" if trust.edges else ""
    return f"Faithfulness {signed(trust.faithfulness)} ({signed(band.lo)} to {signed(band.hi)}): {above} random maps of this picture{beside}."
