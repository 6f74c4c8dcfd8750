"""Row-level security on PostgreSQL: with raw SQL, which names no workspace, a transaction of one reaches nothing of another; and nothing at all where
nobody said whose it is. For the owner of the tables, an ordinary role."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, Table, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from fanlight.errors import FanlightError, Forbidden
from fanlight.store import ledger, sight
from fanlight.store.audit import note
from fanlight.store.database import Database
from fanlight.store.migrate import upgrade
from fanlight.store.tables import audit, explanation, job, metadata

pytestmark = pytest.mark.postgres

SERVERS = {"person", "session", "identity", "spent", "workspace"}
"""Tables of the server: who somebody is, is asked before it is known where they belong."""
WITHIN = {"watcher": "job", "share_item": "share", "sweep_item": "sweep", "trial_item": "trial"}
WALLED = sorted(t.name for t in metadata.sorted_tables if t.name not in SERVERS)
SPACES = ("here", "there")
ALL = "SELECT count(*) FROM {}"


def row(table: Table, space: str, name: str) -> dict[str, Any]:
    """Every text is the row's name, so that what refers to something finds it."""

    def value(column: Column[Any]) -> Any:
        if column.name in ("workspace", "space"):
            return space
        if isinstance(column.type, JSON):
            return {}
        if isinstance(column.type, Boolean):
            return True
        if isinstance(column.type, (Float, Integer)):
            return 1
        return [name] if column.name == "words" else name

    counted = [c for c in table.primary_key.columns if isinstance(c.type, Integer)]
    alone = set(counted) if len(table.primary_key.columns) == 1 else set()
    return {c.name: value(c) for c in table.columns if c not in alone}


def filled(conn: Connection, name: str, space: str, only: Table | None = None) -> None:
    for table in [only] if only is not None else metadata.sorted_tables:
        given = row(table, space, name)
        if table.name == "workspace":
            given |= {"id": space, "weight": 1}
        conn.execute(insert(table).inline(), given)


@pytest.fixture(scope="module")
def db(postgres_server: Any) -> Iterator[Database]:
    url = postgres_server.walled()
    upgrade(url)
    made = Database(url)
    with sight.server():
        for space in SPACES:
            made.write(lambda c, s=space: filled(c, s, s))  # type: ignore[misc]
    yield made
    made.close()


def within(space: str) -> Any:
    return sight.visitor(space)


def count(db: Database, table: str) -> int:
    return int(db.read(lambda c: c.execute(text(ALL.format(table))).scalar_one()))


def test_every_table_is_behind_the_wall_or_one_of_the_servers(db: Database) -> None:
    """A table that is added later, and whose migration forgets its policies, fails here."""
    with sight.server():
        found = db.read(
            lambda c: c.execute(
                text(
                    "select relname, relrowsecurity and relforcerowsecurity, (select count(*) from pg_policy where polrelid = pg_class.oid)"
                    " from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace and relname <> 'alembic_version'"
                )
            ).all()
        )
    assert {name for name, *_ in found} == set(metadata.tables)
    assert {name for name, forced, rules in found if not forced or not rules} == SERVERS
    having = {t.name for t in metadata.sorted_tables if {"workspace", "space"} & set(t.columns.keys())}
    assert having | set(WITHIN) == set(WALLED)


def test_the_owner_is_no_superuser_here(db: Database) -> None:
    asked = text("select rolsuper or rolbypassrls from pg_roles where rolname = current_user")
    assert db.read(lambda c: c.execute(asked).scalar_one()) is False


@pytest.mark.parametrize("name", WALLED)
def test_raw_sql_reads_and_changes_nothing_of_another_workspace(db: Database, name: str) -> None:
    table = metadata.tables[name]
    with sight.server():
        assert count(db, f'"{name}"') >= len(SPACES)
        whole = db.read(lambda c: sorted(map(str, c.execute(select(table)))))
    mine = [r for r in whole if "'here'" in r]
    with within("here"):
        assert db.read(lambda c: sorted(map(str, c.execute(select(table))))) == mine and mine
        assert count(db, f'"{name}" WHERE cast("{name}" as text) LIKE \'%there%\'') == 0

        if wide := [c.name for c in table.columns if not c.primary_key and c.name not in ("workspace", "space")]:

            def attack(conn: Connection) -> None:
                changed = conn.execute(text(f'UPDATE "{name}" SET "{wide[0]}" = "{wide[0]}"')).rowcount
                raise _Undo(changed, conn.execute(text(f'DELETE FROM "{name}"')).rowcount)

            with pytest.raises(_Undo) as done:
                db.write(attack)
            few = 0 if name == "audit" else len(mine)
            assert done.value.args == (few, few), "its own at most"
        if name not in WITHIN:
            theirs = {"space" if "space" in table.columns else "workspace": "there"}
            with pytest.raises(DBAPIError, match="row-level security"):
                db.write(lambda c: c.execute(insert(table).inline(), {**row(table, "there", "new"), **theirs}))
            if name != "audit":
                with pytest.raises(DBAPIError, match="row-level security"):
                    db.write(lambda c: c.execute(update(table).values(**theirs)))
        if name in WITHIN:
            with pytest.raises(DBAPIError, match="row-level security"):
                db.write(lambda c: c.execute(insert(table).inline(), {**row(table, "", "new"), WITHIN[name]: "there"}))
    with sight.server():
        assert db.read(lambda c: sorted(map(str, c.execute(select(table))))) == whole


class _Undo(Exception):
    """Carries what a transaction did, and undoes it."""


@pytest.mark.parametrize("name", WALLED)
def test_where_nobody_says_whose_it_is_there_is_nothing(db: Database, name: str) -> None:
    table = metadata.tables[name]
    assert sight.current() is None and count(db, f'"{name}"') == 0
    for space in ("", "there"):
        with within(""):
            assert count(db, f'"{name}"') == 0
            if name != "audit" or space:
                with pytest.raises(DBAPIError, match="row-level security"):
                    db.write(lambda c: c.execute(insert(table).inline(), row(table, space, "new")))  # noqa: B023


def test_the_log_takes_what_is_done_to_the_server_and_shows_it_to_nobody_else(db: Database) -> None:
    with within("here"):
        db.write(lambda c: note(c, "", "person:x", "person.password", "x"))
        assert db.read(lambda c: c.execute(select(audit).where(audit.c.workspace == "")).all()) == []
        with pytest.raises(DBAPIError, match="row-level security"):
            db.write(lambda c: note(c, "there", "person:x", "explanation.delete", "x"))
    with sight.server():
        kept = db.read(lambda c: c.execute(select(audit.c.action).where(audit.c.workspace == "")).scalars().all())
    assert kept == ["person.password"]


def test_a_person_is_told_where_else_they_belong_and_changes_nothing_there(db: Database) -> None:
    with sight.visitor("here", "there"):  # the person whose id is "there"
        found = db.read(lambda c: c.execute(text("select workspace, person from member")).all())
        assert sorted(map(tuple, found)) == [("here", "here"), ("there", "there")]
        change = text("update member set role = 'owner' where workspace = 'there'")
        assert db.write(lambda c: c.execute(change)).rowcount == 0


def test_nothing_is_left_on_a_connection_of_the_pool(db: Database) -> None:
    """Of the reader's and of the writer's, after success and failure, in whatever order."""
    settings = text("select current_setting('fanlight.workspace', true), current_setting('fanlight.server', true)")

    def left() -> set[Any]:
        some = [db.engine.connect() for _ in range(8)]
        try:
            return {tuple(v or "" for v in c.execute(settings).one()) for c in some}
        finally:
            for c in some:
                c.close()

    def broken(conn: Connection) -> None:
        conn.execute(text("select 1/0"))

    for n in range(20):
        for opened in (sight.server, lambda: within("here")):
            with opened():
                count(db, "job")
                db.write(lambda c: c.execute(text("select 1")))
                for work in (db.read, db.write):
                    with pytest.raises(DBAPIError):
                        work(broken)
            assert count(db, "job") == 0, n
    assert left() == {("", "")}


def test_writes_that_share_a_commit_see_each_their_own(db: Database) -> None:
    """Sixty-four of them: of workspaces, of the server, of nobody, some of which fail and are undone."""
    gate, seen, lock = threading.Event(), [], threading.Lock()

    def look(expected: int, fails: bool) -> Any:
        def act(conn: Connection) -> None:
            n = conn.execute(text('SELECT count(*) FROM "explanation"')).scalar_one()
            with lock:
                seen.append((expected, n))
            if fails:
                raise _Undo

        return act

    first = threading.Thread(target=lambda: db.write(lambda c: gate.wait(5)))
    first.start()
    waiting = []
    for n in range(60):
        opened, expected = [(sight.server, 2), (lambda: within("here"), 1), (lambda: within(""), 0)][n % 3]
        with opened():  # type: ignore[operator]
            waiting.append(db._enqueue(look(expected, n % 4 == 0)))
    gate.set()
    first.join()
    for future in waiting:
        try:
            future.result(10)
        except _Undo:
            pass
    assert len(seen) == 60 and [s for s in seen if s[0] != s[1]] == []


def test_the_limit_of_the_whole_queue_holds_behind_the_wall(db: Database) -> None:
    """The queue is full of what others asked for, and that is all that a request learns of it."""
    asked = {
        "workspace": "here",
        "principal": "p",
        "explanation": "here",
        "kind": "explain",
        "work": {},
        "priority": 1,
        "cost": 5,
    }

    def full(conn: Connection) -> None:
        ledger.enqueue(conn, asked, queue_limit=1000, principal_limit=9, throughput=1.0)

    with sight.server():
        db.write(
            lambda c: c.execute(
                update(job).where(job.c.workspace == "there").values(state="queued", kind="explain", cost=999)
            )
        )
    with within("here"):
        with pytest.raises(FanlightError, match="queue of this server is full"):
            db.write(full)
        assert (
            count(db, "job") == 1
            and db.read(lambda c: c.execute(text("select current_setting('fanlight.server', true)")).scalar()) == ""
        )
    with sight.server():
        db.write(
            lambda c: c.execute(
                update(job).where(job.c.workspace == "there").values(state="done", kind="there", cost=1)
            )
        )


def test_nothing_inside_a_visitors_request_comes_to_see_the_server() -> None:
    with within("here"):
        with pytest.raises(RuntimeError, match="cannot come to see"), sight.server():
            pass
        with pytest.raises(Forbidden), sight.operator(False):
            pass
        with sight.operator(True):
            assert sight.current() == sight.SERVER
        assert sight.current() == sight.Sight("here")
    assert sight.current() is None


WAYS = {
    "door": {"api/gate.py"},
    "visitor": {
        "api/gate.py",
        "service/workspaces.py",
    },  # who leaves a workspace, which may not be the one they look at
    "upkeep": {"api/health.py", "service/listing.py", "service/waiting.py"},
    "operator": {"service/admission.py", "service/people.py", "service/workspaces.py"},
    "server": {"app.py", "worker.py", "service/shares.py"},
}
"""Who may widen what is seen. What is added here has to be a decision."""


def test_only_those_named_here_widen_what_a_transaction_sees(root: Path) -> None:
    found: dict[str, set[str]] = {}
    home = root / "backend" / "fanlight"
    for path in home.rglob("*.py"):
        for way in re.findall(r"\bsight\.(door|visitor|upkeep|operator|server|_set|_current)\(", path.read_text()):
            found.setdefault(way, set()).add(str(path.relative_to(home)))
    assert found == WAYS
    told = {
        str(p.relative_to(home))
        for p in home.rglob("*.py")
        if re.search(r"\bset_config\b|fanlight\.server|sees=|\bsight import\b", p.read_text())
    }
    assert told == {
        "bench/_million.py", "cli/maintain.py", "doctor/service.py", "service/backup.py", "store/sight.py",
        "store/migrations/env.py", "store/migrations/versions/0011_walls.py",
    }  # fmt: skip


def test_the_rows_of_the_fixture_hold_together(db: Database) -> None:
    with sight.server():
        assert db.read(lambda c: c.execute(select(func.count()).select_from(explanation)).scalar_one()) == 2
