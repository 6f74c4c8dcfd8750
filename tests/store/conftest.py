"""A migrated database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_jobs import Jobs

from fanlight.store.database import Database
from fanlight.store.migrate import upgrade


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fanlight.sqlite'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    upgrade(url)
    database = Database(url)
    yield database
    database.close()


@pytest.fixture
def jobs(db: Database) -> Jobs:
    return Jobs(db)
