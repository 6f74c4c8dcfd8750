"""Brings a database to the newest revision; at every start, and from every released revision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from fanlight.errors import Conflict, NotFound

LOCK = 0xFA_4C_16_47  # of PostgreSQL: several servers may start at once


def ours(name: str | None, kind: str, _parents: Any) -> bool:
    """What is compared with the tables in the code: not the full-text index, which each kind of database makes its own way."""
    return not (kind in ("table", "index") and "listing_words" in (name or ""))


def config(url: str) -> Config:
    """Alembic's configuration, without an ini file."""
    c = Config()
    c.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    c.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return c


def upgrade(url: str, revision: str = "head") -> None:
    """Migrates; creates the SQLite file where there is none."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        Path(parsed.database or "").parent.mkdir(parents=True, exist_ok=True)
        command.upgrade(config(url), revision)
        return
    engine = create_engine(url)
    try:
        with engine.connect() as held:
            held.execute(text("select pg_advisory_lock(:n)"), {"n": LOCK})
            try:
                command.upgrade(config(url), revision)
            finally:
                held.execute(text("select pg_advisory_unlock(:n)"), {"n": LOCK})
    finally:
        engine.dispose()


def revisions() -> list[str]:
    """All that this version knows, oldest first."""
    found = ScriptDirectory.from_config(config("sqlite://")).walk_revisions()
    return [r.revision for r in found][::-1]


def current(url: str) -> str | None:
    """The revision of a database, or None where it has none of our tables. Creates nothing."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        return None
    engine = create_engine(url)
    try:
        with engine.connect() as conn:
            return MigrationContext.configure(conn).get_current_revision()
    finally:
        engine.dispose()


def upgraded(url: str) -> None:
    """Refuses a database of another revision than this version's: a command beside the server must not migrate under it."""
    found, newest = current(url), revisions()[-1]
    if found is None:
        raise NotFound(
            "There is no database of Fanlight.",
            code="no_database",
            hint="Check FANLIGHT_DATA_DIR and FANLIGHT_DATABASE_URL.",
        )
    if found != newest:
        raise Conflict(
            f"The database is of revision {found}, this version works with {newest}.",
            code="other_revision",
            hint="Use the version of the server, or start the new one first, which migrates.",
        )
