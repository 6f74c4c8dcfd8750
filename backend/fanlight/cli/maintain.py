"""`fanlight backup`, `restore`, `gc`: what whoever runs a server does beside it. They work on the settings, not over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fanlight.cli.output import FAILED, Json, emit, part, say
from fanlight.cli.serve import configured

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the database and the artifacts.", show_default="fanlight-data"),
]


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write, a tar.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write database and artifacts into one file; safe while the server runs.

    Every artifact is checked. One that is missing or damaged is named, the rest is saved, and the exit code is 1.
    """
    saved = part("fanlight.service.backup", "all").backup(configured(data_dir=data_dir), file)
    if as_json:
        emit(asdict(saved))
    else:
        say(
            f"Wrote {file}: database of revision {saved.revision}, {saved.blobs} artifacts, {saved.size / 2**20:.1f} MiB{_models(saved.models)}."
        )
        _missing(saved.missing)
    if saved.missing:
        raise typer.Exit(FAILED)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `fanlight backup`.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Bring database and artifacts back from a backup, into an empty place.

    The access token is not in the file: the next start makes one, or takes FANLIGHT_TOKEN. Links that were shared work again.
    """
    saved = part("fanlight.service.backup", "all").restore(configured(data_dir=data_dir), file)
    if as_json:
        emit(asdict(saved))
    else:
        say(
            f"Restored {saved.blobs} artifacts and the database of revision {saved.revision}{_models(saved.models)}. Start the server."
        )
        _missing(saved.missing)
    if saved.missing:
        raise typer.Exit(FAILED)


def gc(
    delete: Annotated[
        bool, typer.Option("--delete", help="Really delete them; without it they are only counted.")
    ] = False,
    grace_hours: Annotated[
        float, typer.Option(min=1, max=87600, help="Hours for which an artifact stays that nothing needs yet.")
    ] = 24,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Find artifacts that no record and no live share needs any more, and delete them with --delete; safe while the server runs."""
    settings = configured(data_dir=data_dir)
    database, blobs = part("fanlight.store.database", "all"), part("fanlight.blobs", "all")
    part("fanlight.store.migrate", "all").upgraded(settings.database)
    db = database.Database(settings.database, sees=part("fanlight.store.sight", "all").SERVER)
    try:
        stock = part("fanlight.service.stock", "all")
        found = stock.collect(db, blobs.Blobs(settings.artifacts), grace=grace_hours * 3600, dry=not delete)
    finally:
        db.close()
    if as_json:
        return emit({**asdict(found), "deleted": delete})
    spare = f"{found.unneeded} artifacts ({found.size / 2**20:.1f} MiB) are needed by nothing"
    done = f"; {found.removed} were deleted" if delete else "; --delete deletes them" if found.unneeded else ""
    say(f"{spare}{done}. {found.kept} are needed, {found.young} are younger than {grace_hours:g} h and stay.")


def _models(count: int) -> str:
    return f", with {count} {'model that was' if count == 1 else 'models that were'} made of others" if count else ""


def _missing(names: list[str]) -> None:
    if names:
        shown = "\n".join(f"  {n}" for n in names[:20]) + ("\n  ..." if len(names) > 20 else "")
        say(f"{len(names)} artifacts are missing or damaged; recomputing their explanations makes them again:\n{shown}")
