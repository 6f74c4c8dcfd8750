"""`fanlight prototypes`: changes of a prototype classifier that are for good. Each gives a model of its own; the original stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fanlight import bundles
from fanlight.cli.output import Json, emit, part, say
from fanlight.cli.serve import configured
from fanlight.drawing.number import percent
from fanlight.drawing.trial import points
from fanlight.errors import unknown
from fanlight.settings import Settings

app = typer.Typer(help="Change a prototype classifier for good: a model of its own, with what that did to accuracy.")


@app.callback()
def prototypes() -> None:
    """A callback, so that typer keeps `remove` a command of a group."""


Model = Annotated[str, typer.Argument(metavar="MODEL", help="A bundle folder, or the name of a bundle here.")]
Numbers = Annotated[list[int], typer.Argument(metavar="PROTOTYPE...", help="Numbers, as on the page.")]
Pictures = Annotated[
    str, typer.Option(help="Folder of pictures with a subfolder for each class, or field-guide for the drawn one.")
]
Out = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="Folder to put the new bundle in.", show_default="the data folder"),
]


@app.command()
def remove(model: Model, prototype: Numbers, data: Pictures, out: Out = None, as_json: Json = False) -> None:
    """Take prototypes out of a model and repair its last layer, in closed form.

    Writes a new bundle and says accuracy before and after. A server offers it from its next start.
    """
    _made("fanlight.derive.removal", "remove", model, prototype, data, out, as_json)


@app.command()
def forget(model: Model, prototype: Numbers, data: Pictures, out: Out = None, as_json: Json = False) -> None:
    """Have prototypes forget what they look at and learn to look at something else; all others are kept as they are.

    Learnt from every other picture of each class, measured on the others. Writes a new bundle.
    """
    _made("fanlight.derive.learning", "forget", model, prototype, data, out, as_json)


@app.command("add-class")
def add_class(
    model: Model,
    name: Annotated[str, typer.Argument(metavar="CLASS", help="The subfolder of --data that holds its pictures.")],
    data: Pictures,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Teach a model a further class; its known classes and their prototypes stay as they are.

    Learnt from every other picture of each class, measured on the others. Writes a new bundle.
    """
    _made("fanlight.derive.learning", "add_class", model, name, data, out, as_json)


def _made(module: str, change: str, model: str, what: Any, data: str, out: Path | None, as_json: bool) -> None:
    """Makes the change, with its progress on stderr, and says what came of it."""
    settings = configured()
    place = found(model, settings)
    pictures = part("fanlight.derive.sources", "all").named(data, settings)
    into = (out or bundles.derived(settings.data_dir)).resolve()
    columns = (TextColumn("{task.description}"), BarColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("loading", total=1)
        story = getattr(part(module, "all"), change)(
            place, what, pictures, into, lambda done, of: bar.update(task, completed=done, description=of)
        )
    if as_json:
        return emit(story)
    typer.echo("\n".join(sentences(story)))
    if out is not None:
        say(f"A server offers it with FANLIGHT_MODELS={story['bundle']}")


def found(given: str, settings: Settings) -> Path:
    """The folder of a bundle, by path or by the name of one that is shipped, installed or was made here."""
    if (Path(given) / "bundle.toml").is_file():
        return Path(given)
    known = [*bundles.shipped(), *bundles.installed(), *bundles.made(settings.data_dir)]
    for folder in known:
        if folder.name == given:
            return folder
    raise unknown("model", given, sorted(p.name for p in known), hint="Or give the folder of a bundle.")


def sentences(story: dict[str, Any]) -> list[str]:
    """What a person wants to read of it."""

    def share(p: dict[str, Any]) -> str:
        return f"{percent(p['value'], 1)} of {p['n']:,} (95 % interval {percent(p['lo'], 1)} to {percent(p['hi'], 1)})"

    change = story["difference"]
    lines = [
        story["name"],
        f"Right before: {share(story['before'])}.",
        f"Right after: {share(story['after'])}"
        + (f"; without the repair {percent(story['zeroed']['value'], 1)}." if "zeroed" in story else "."),
        f"Change: {points(change['value'])} points (95 % interval {points(change['lo'])} to {points(change['hi'])}); "
        f"{story['corrected']} corrected, {story['spoiled']} spoiled.",
        f"Written to {story['bundle']}; the original is untouched.",
    ]
    if "further" in story:
        lines.insert(3, f"Right on {story['change']['add_class']}: {share(story['further'])}.")
    if story["data"]["unreadable"]:
        lines.append(f"{story['data']['unreadable']:,} files are no pictures and were left out.")
    return lines
