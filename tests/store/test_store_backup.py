"""A backup of either kind of database brings every row back; and a missing program of PostgreSQL is a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import insert, select
from store_jobs import Jobs

from fanlight.blobs import Blobs
from fanlight.errors import Conflict, InvalidField, NotFound
from fanlight.service.backup import backup, restore
from fanlight.settings import Settings
from fanlight.store.database import Database
from fanlight.store.migrate import upgrade
from fanlight.store.sight import NOTHING, SERVER
from fanlight.store.tables import explanation, job, reference
from support.postgres import Postgres


def place(folder: Path, url: str | None) -> Settings:
    return Settings(data_dir=folder, database_url=url)


def kept(jobs: Jobs, folder: Path) -> str:
    """A job, and a blob that a row names."""
    jobs.add()
    name = Blobs(place(folder, None).artifacts).put(b"an artifact")
    jobs.db.write(lambda c: c.execute(insert(reference).values(digest=name, owner="explanation:x", workspace="w")))
    return name


def test_every_row_and_blob_comes_back(jobs: Jobs, url: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    name = kept(jobs, tmp_path)
    before = jobs.db.read(lambda c: (c.execute(select(job)).all(), c.execute(select(explanation)).all()))
    saved = backup(place(tmp_path, url), tmp_path / "all.tar")
    assert (saved.blobs, saved.missing) == (1, [])
    target = None
    if url.startswith("postgresql"):
        server: Postgres = request.getfixturevalue("postgres_server")
        target = server.database()
    there = place(tmp_path / "there", target)
    assert restore(there, tmp_path / "all.tar").blobs == 1
    db = Database(there.database)
    assert db.read(lambda c: (c.execute(select(job)).all(), c.execute(select(explanation)).all())) == before
    db.write(lambda c: c.execute(insert(reference).values(digest="0" * 64, owner="explanation:y", workspace="w")))
    db.close()
    assert Blobs(there.artifacts).get(name) == b"an artifact"
    with pytest.raises(Conflict, match="already"):
        restore(there, tmp_path / "all.tar")


@pytest.mark.postgres
def test_the_owner_behind_row_level_security_saves_and_brings_back_every_row(
    walled_url: str, postgres_server: Postgres, tmp_path: Path
) -> None:
    upgrade(walled_url)
    db = Database(walled_url, sees=SERVER)
    name = kept(Jobs(db), tmp_path)
    wanted = lambda c: (c.execute(select(job)).all(), c.execute(select(explanation)).all())  # noqa: E731
    before = db.read(wanted)
    db.close()
    saved = backup(place(tmp_path, walled_url), tmp_path / "all.tar")
    assert (saved.blobs, saved.missing) == (1, []) and before[0]
    there = place(tmp_path / "there", postgres_server.walled())
    assert restore(there, tmp_path / "all.tar").blobs == 1
    for sees, expected in ((SERVER, before), (NOTHING, ([], []))):
        db = Database(there.database, sees=sees)
        assert db.read(wanted) == expected, "the wall came along"
        db.close()
    assert Blobs(there.artifacts).get(name) == b"an artifact"


@pytest.mark.postgres
def test_a_backup_goes_back_only_into_a_database_of_its_kind(jobs: Jobs, url: str, tmp_path: Path) -> None:
    if url.startswith("sqlite"):
        pytest.skip("the other way round is what is asked")
    kept(jobs, tmp_path)
    backup(place(tmp_path, url), tmp_path / "all.tar")
    with pytest.raises(InvalidField, match="postgresql"):
        restore(place(tmp_path / "there", None), tmp_path / "all.tar")


@pytest.mark.postgres
def test_without_pg_dump_it_says_what_to_do(
    jobs: Jobs, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url.startswith("sqlite"):
        pytest.skip("SQLite copies itself")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="pg_dump is not installed") as error:
        backup(place(tmp_path, url), tmp_path / "all.tar")
    assert error.value.hint and "PostgreSQL client" in error.value.hint
    assert not (tmp_path / "all.tar").exists() and list(tmp_path.glob("*.part")) == []
