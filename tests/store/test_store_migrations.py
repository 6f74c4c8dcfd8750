"""Migrations: from nothing to head, back, and through a death at any statement."""

from __future__ import annotations

from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event, inspect

from fanlight.store.migrate import config, ours, upgrade
from fanlight.store.tables import metadata


def differences(url: str) -> list[Any]:
    """Between the database and the tables that the code knows."""
    engine = create_engine(url)
    with engine.connect() as conn:
        found = compare_metadata(
            MigrationContext.configure(conn, opts={"compare_type": True, "include_name": ours}), metadata
        )
    engine.dispose()
    return list(found)


def tables(url: str) -> set[str]:
    engine = create_engine(url)
    found = set(inspect(engine).get_table_names())
    engine.dispose()
    return found


def revisions() -> list[str]:
    """Oldest first."""
    found = ScriptDirectory.from_config(config("sqlite://")).walk_revisions()
    return [r.revision for r in found][::-1]


def test_from_nothing_to_head_gives_the_tables_that_the_code_knows(url: str) -> None:
    upgrade(url)
    assert differences(url) == []
    upgrade(url)
    assert differences(url) == []


@pytest.mark.parametrize("revision", revisions())
def test_from_every_revision_to_head_and_back(url: str, revision: str) -> None:
    upgrade(url, revision)
    upgrade(url)
    assert differences(url) == []
    command.downgrade(config(url), revision)
    upgrade(url)
    assert differences(url) == []
    command.downgrade(config(url), "base")
    assert tables(url) <= {"alembic_version"}


def test_there_is_one_line_of_revisions() -> None:
    assert len(ScriptDirectory.from_config(config("sqlite://")).get_heads()) == 1


class Death(BaseException):
    """The process ends here."""


@pytest.fixture
def dying() -> Any:
    """`dying(n)`: the n-th statement of any engine from now on is the last."""
    state = {"left": -1}

    def count(*_: Any) -> None:
        state["left"] -= 1
        if state["left"] == 0:
            raise Death

    event.listen(Engine, "before_cursor_execute", count)
    yield lambda n: state.update(left=n)
    event.remove(Engine, "before_cursor_execute", count)


@pytest.mark.slow
def test_a_migration_that_is_killed_at_any_statement_can_be_run_again(url: str, dying: Any) -> None:
    for n in (*range(1, 12), 30, 45, 60, 75, 90, 105, 120, 135, 150, 165, 180, 195, 220, 245, 270):
        dying(n)
        try:
            upgrade(url)
        except Death:
            dying(-1)
        else:
            dying(-1)
            break
        upgrade(url)
        assert differences(url) == [], f"killed at statement {n}"
        command.downgrade(config(url), "base")
    else:
        pytest.fail("the migration has more statements than were tried")
