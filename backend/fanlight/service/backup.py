"""Backup of a whole installation into one file, and back: the database first, then the models that were made of others and every blob that this
copy of the database names.

The file is a plain tar: `manifest.json`, the database (SQLite: `database.sqlite`, by its online backup; PostgreSQL: `database.dump`, by
pg_dump), `models/NAME/PATH`, `blobs/DIGEST`. Every blob is checked against its name when it is written and when it is read, everything else against
the manifest. The access token stays where it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, make_url

from fanlight import __version__
from fanlight.artifact import digest
from fanlight.blobs import Blobs
from fanlight.errors import ComputeFailed, Conflict, FanlightError, InvalidField, NotFound
from fanlight.service import backup_models
from fanlight.service.stock import needed
from fanlight.settings import Settings
from fanlight.store.database import Database
from fanlight.store.migrate import revisions, upgrade
from fanlight.store.sight import SERVER

FORMAT = 2  # 1: without models
LARGEST = 8 * 2**30  # bytes of one blob, far above any that Fanlight makes


@dataclass(frozen=True)
class Saved:
    """What a backup holds or a restore brought back. models: those made of others. missing: blobs that the database names and that could not be had
    whole."""

    models: int
    blobs: int
    size: int
    missing: list[str]
    revision: str


def backup(settings: Settings, file: Path) -> Saved:
    """Writes everything into `file`, which appears only when it is whole; safe while the server runs. Errors: file_exists, no_database."""
    if file.exists():
        raise Conflict(f"There is a file {file} already.", code="file_exists", hint="Choose another name.")
    blobs = Blobs(settings.artifacts)
    part = file.with_name(file.name + ".part")
    try:
        with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".fanlight-backup-") as folder:
            name, copy = _dump(make_url(settings.database), Path(folder))
            revision, names = _named(settings, copy)
            models = backup_models.listed(settings.data_dir)
            with (
                os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as raw,
                tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar,
            ):
                about = {"format": FORMAT, "fanlight": __version__, "revision": revision, "created": time.time()}
                about |= {
                    "database": name,
                    "database_digest": _file_digest(copy),
                    "models": backup_models.digests(models),
                }
                _add(tar, "manifest.json", json.dumps(about, indent=1).encode())
                tar.add(copy, name, filter=_anonymous)
                for member, path in models.items():
                    tar.add(path, member, filter=_anonymous)
                made = len({n.split("/")[1] for n in models})
                saved = _add_blobs(tar, blobs, sorted(names), revision, made)
                raw.flush()
                os.fsync(raw.fileno())
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)
    return saved


def _add_blobs(tar: tarfile.TarFile, blobs: Blobs, names: list[str], revision: str, models: int) -> Saved:
    count = size = 0
    missing = []
    for name in names:
        try:
            blob = blobs.get(name)
        except (
            NotFound
        ):  # what is named may be no blob, such as the digest of an input: those of references must be there
            missing.append(name)
            continue
        except ComputeFailed:
            missing.append(name)
            continue
        _add(tar, f"blobs/{name}", blob)
        count, size = count + 1, size + len(blob)
    return Saved(models, count, size, missing, revision)


def restore(settings: Settings, file: Path) -> Saved:
    """Brings an installation back from `file` into an empty database and the artifact store. Errors: not_empty, invalid_backup, too_new.

    Blobs first, then models and the database, each in one step, so that a restore that was broken off can be repeated.
    """
    url = make_url(settings.database)
    _empty(url)
    blobs = Blobs(settings.artifacts)
    place = Path(url.database or "").absolute().parent if url.get_backend_name() == "sqlite" else None
    if place:
        place.mkdir(parents=True, exist_ok=True)
    with (
        _opened(file) as tar,
        tempfile.TemporaryDirectory(dir=place, prefix=".fanlight-restore-") as folder,
        contextlib.ExitStack() as later,
    ):
        members = iter(tar)
        about = _manifest(tar, next(members, None))
        held = next(members, None)
        copy = Path(folder) / "database"
        if held is None or held.name != about["database"] or not held.isfile():
            raise _invalid(file, "it holds no database")
        _fits(url, str(about["database"]))
        with copy.open("wb") as out:
            shutil.copyfileobj(_content(tar, held), out)
        if _file_digest(copy) != about["database_digest"]:
            raise _invalid(file, "its database is damaged")
        count, size, found = 0, 0, set()
        models = backup_models.Arriving(settings.data_dir, about.get("models", {}))
        later.callback(models.close)
        for member in members:
            if models.takes(member):
                if not models.write(member.name, _content(tar, member)):
                    raise _invalid(file, f"“{member.name[:80]}” is damaged")
                continue
            name = member.name.removeprefix("blobs/")
            if not member.isfile() or f"blobs/{name}" != member.name or member.size > LARGEST:
                raise _invalid(file, f"“{member.name[:80]}” does not belong into it")
            blob = _content(tar, member).read()
            if digest(blob) != name:
                raise _invalid(file, f"the artifact {name[:80]} is damaged")
            blobs.put(blob)
            count, size = count + 1, size + len(blob)
            found.add(name)
        if models.missing:
            raise _invalid(file, f"it lacks “{models.missing[0][:80]}”")
        models.keep()
        _load(url, copy)
    upgrade(settings.database)
    return Saved(len(models.names), count, size, sorted(_wanted(settings) - found), str(about["revision"]))


# --- databases


def _dump(url: URL, folder: Path) -> tuple[str, Path]:
    if url.get_backend_name() == "sqlite":
        if not Path(url.database or "").is_file():
            raise NotFound(f"There is no database {url.database}.", code="no_database", hint="Check FANLIGHT_DATA_DIR.")
        copy = folder / "database.sqlite"
        with (
            contextlib.closing(sqlite3.connect(f"file:{url.database}?mode=ro", uri=True)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            (sound,) = target.execute("PRAGMA integrity_check(1)").fetchone()
            if sound != "ok":
                raise ComputeFailed(f"The database is damaged: {sound}", code="database_damaged")
        return copy.name, copy
    copy = folder / "database.dump"
    # Row-level security holds for the owner of the tables too, who asks for all rows as the server does.
    asked = ["--format=custom", "--no-owner", "--no-privileges", "--enable-row-security", f"--file={copy}"]
    _tool("pg_dump", url, asked)
    return copy.name, copy


def _load(url: URL, copy: Path) -> None:
    if url.get_backend_name() == "sqlite":
        target = Path(url.database or "")
        os.chmod(copy, 0o600)
        with copy.open("rb") as f:
            os.fsync(f.fileno())
        copy.rename(target)
        return
    _tool("pg_restore", url, ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", str(copy)])


def _tool(name: str, url: URL, arguments: list[str]) -> None:
    """Runs a program of PostgreSQL; the password goes by its environment, never by its arguments."""
    if shutil.which(name) is None:
        raise NotFound(
            f"{name} is not installed here, and PostgreSQL is copied by its own programs.",
            code=f"no_{name}",
            hint=f"Install the PostgreSQL client of the server's version or newer, or run {name} elsewhere: docs/operations.md.",
        )
    env = {**os.environ, **({"PGPASSWORD": str(url.password)} if url.password else {})}
    env["PGOPTIONS"] = f"{env.get('PGOPTIONS', '')} -c fanlight.server=on".strip()
    plain = url.set(drivername="postgresql", password=None).render_as_string()
    run = subprocess.run([name, f"--dbname={plain}", *arguments], capture_output=True, text=True, env=env, check=False)
    if run.returncode:
        said = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
        raise ComputeFailed(f"{name} failed: {said}", code=f"{name}_failed")


def _named(settings: Settings, copy: Path) -> tuple[str, set[str]]:
    """The revision and the blobs that a copy of the database names; PostgreSQL's dump cannot be asked, so the database is, after it."""
    db = Database(f"sqlite:///{copy}" if copy.suffix == ".sqlite" else settings.database, sees=SERVER)
    try:
        revision = db.read(lambda c: c.execute(text("select version_num from alembic_version")).scalar_one())
        return str(revision), db.read(needed) & {b.name for b in Blobs(settings.artifacts).listed()} | db.read(
            _referred
        )
    finally:
        db.close()
        for extra in ("-wal", "-shm"):
            Path(f"{copy}{extra}").unlink(missing_ok=True)


def _referred(conn: Any) -> set[str]:
    """Blobs that must be there, whatever else a row may name."""
    return set(conn.execute(text("select digest from reference")).scalars())


def _wanted(settings: Settings) -> set[str]:
    db = Database(settings.database, sees=SERVER)
    try:
        return db.read(_referred)
    finally:
        db.close()


def _empty(url: URL) -> None:
    if url.get_backend_name() == "sqlite":
        taken = Path(url.database or "").exists()
    else:
        engine = create_engine(url)
        taken = bool(inspect(engine).get_table_names())
        engine.dispose()
    if taken:
        raise Conflict(
            f"There is a database already: {url.render_as_string(hide_password=True)}",
            code="not_empty",
            hint="A backup is restored into an empty place: choose another FANLIGHT_DATA_DIR or FANLIGHT_DATABASE_URL, or move the old one away.",
        )


def _fits(url: URL, name: str) -> None:
    kind = "sqlite" if name.endswith(".sqlite") else "postgresql"
    if url.get_backend_name() != kind:
        raise InvalidField(
            f"This backup holds a {kind} database, and FANLIGHT_DATABASE_URL names one of {url.get_backend_name()}.",
            code="other_database",
            hint="Restore it into a database of its kind.",
        )


# --- the file


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    if not file.is_file():
        raise NotFound(f"There is no file {file}.", code="no_backup")
    try:
        with tarfile.open(file, "r:") as tar:
            yield tar
    except tarfile.TarError as e:
        raise _invalid(file, str(e)) from e


def _manifest(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> Mapping[str, Any]:
    where = Path(str(tar.name))
    if member is None or member.name != "manifest.json" or member.size > 2**20:
        raise _invalid(where, "it does not begin with a manifest")
    try:
        about = json.loads(_content(tar, member).read())
        fits = about["format"] in (1, FORMAT) and {"database", "database_digest", "revision"} <= set(about)
        fits = fits and backup_models.plain(about.get("models", {}))
    except (ValueError, KeyError, TypeError) as e:
        raise _invalid(where, "its manifest cannot be read") from e
    if not fits or about["revision"] not in revisions():
        raise FanlightError(
            "This backup was made by a newer Fanlight.", code="too_new", hint="Install that version or a newer one."
        )
    return dict(about)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    found = tar.extractfile(member)
    assert found is not None  # a plain file
    return found  # type: ignore[return-value]


def _add(tar: tarfile.TarFile, name: str, blob: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(blob), int(time.time()), 0o600
    tar.addfile(info, io.BytesIO(blob))


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o600
    return info


def _file_digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _invalid(file: Path, why: str) -> InvalidField:
    return InvalidField(
        f"{file} is no backup that can be used: {why}.", code="invalid_backup", hint="Nothing was changed."
    )
