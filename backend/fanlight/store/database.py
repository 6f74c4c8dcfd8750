"""One way to the database: `read` and `write` take a function of a connection and run it in one transaction.

All writes go through one thread that commits several at once. SQLite has one writer anyway: that removes the tail of lock waits and affords
`synchronous=FULL`, which a durable 202 needs. On PostgreSQL servers take turns by an advisory lock. So on both a write sees all that was
written before it ("look, then insert" is safe), and events get their numbers in the order in which they become visible.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection, create_engine, event, func, select, text
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from fanlight import meters
from fanlight.errors import Unavailable
from fanlight.store import news, sight

T = TypeVar("T")
Write = tuple[Callable[[Connection], Any], Future[Any], sight.Sight]
log = structlog.get_logger()
GROUP = 64  # most writes in one commit
PATIENCE = "-c idle_in_transaction_session_timeout=10s"  # with a server that fell asleep during its turn
TURN = 0xFA_4C_16_48  # advisory lock of PostgreSQL: whose turn it is to write


def now(conn: Connection) -> int:
    """Microseconds since 1970 by the database's clock, so that servers agree on leases."""
    if conn.dialect.name == "postgresql":
        return int(conn.execute(text("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")).scalar_one())
    return time.time_ns() // 1000


class Database:
    """Args: url: SQLAlchemy URL, `sqlite:///path` or `postgresql://...`; sees: what transactions see where nobody says it.

    It is the one place that opens transactions, and each sees what `sight.current()` said when it was asked for.
    """

    def __init__(self, url: str, *, sees: sight.Sight = sight.NOTHING):
        self.url = url
        self._sees = sees
        self.name = secrets.token_hex(4)
        self.sqlite = make_url(url).get_backend_name() == "sqlite"
        if self.sqlite:
            Path(make_url(url).database or "").parent.mkdir(parents=True, exist_ok=True)
            self.engine = create_engine(
                url, connect_args={"check_same_thread": False, "timeout": 30}, pool_size=16, max_overflow=32
            )
            _tune_sqlite(self.engine)
            self._reader = self.engine
        else:
            self.engine = create_engine(
                url, connect_args={"options": PATIENCE}, pool_size=16, max_overflow=16, pool_pre_ping=True
            )
            self._reader = self.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="db")
        self._writes: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._door = threading.Lock()
        self._closed = False
        self._writer = threading.Thread(target=self._write_loop, name="db-writer", daemon=True)
        self._writer.start()

    def read(self, fn: Callable[[Connection], T]) -> T:
        """Runs `fn` on a consistent snapshot."""
        with _plain_errors(), self._reader.connect() as conn:
            sight.see(conn, sight.current() or self._sees)
            return fn(conn)

    def write(self, fn: Callable[[Connection], T]) -> T:
        """Runs `fn`, once, in a transaction that is durable when this returns. An exception undoes `fn` and nothing else."""
        with _plain_errors():
            return self._enqueue(fn).result()

    def offer(self, fn: Callable[[Connection], Any], patience: float) -> bool:
        """`write`, waited for at most `patience` seconds; whether it was done by then. It is done in any case, as soon as it can be."""
        with _plain_errors():
            try:
                self._enqueue(fn).result(patience)
            except TimeoutError:
                return False
        return True

    async def awrite(self, fn: Callable[[Connection], T]) -> T:
        """`write` for the event loop. Who is cancelled while waiting does not know whether `fn` took effect."""
        with _plain_errors():
            return await asyncio.wrap_future(self._enqueue(fn))

    async def aread(self, fn: Callable[[Connection], T]) -> T:
        here = contextvars.copy_context()  # an executor knows nothing of who asked
        return await asyncio.get_running_loop().run_in_executor(self._pool, here.run, self.read, fn)

    def close(self) -> None:
        """Finishes the writes that were asked for and refuses further ones."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._writes.put(None)
        self._writer.join(10)
        self._pool.shutdown()
        self.engine.dispose()

    def _enqueue(self, fn: Callable[[Connection], T]) -> Future[T]:
        future: Future[T] = Future()
        here = contextvars.copy_context()  # log lines of the writer name the request or the job that asked
        work: Callable[[Connection], T] = lambda conn: here.run(fn, conn)  # noqa: E731
        with self._door:
            if self._closed:
                raise Unavailable("The server is shutting down.", code="draining", hint="Try again shortly.")
            self._writes.put((work, future, sight.current() or self._sees))
        return future

    def _write_loop(self) -> None:
        item: Write | None
        while (item := self._writes.get()) is not None:
            batch = []
            while item is not None:
                if item[1].set_running_or_notify_cancel():  # else its asker has gone
                    batch.append(item)
                if len(batch) == GROUP or self._writes.empty():
                    break
                item = self._writes.get()
            if batch:
                self._commit(batch)
            if item is None:
                return

    def _commit(self, batch: list[Write]) -> None:
        """Each write in its own savepoint, one commit for all; answers only after the commit."""
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self.engine.connect() as conn:
                conn.execution_options(fanlight_write=True)
                news.forget(conn)
                with conn.begin():
                    if not self.sqlite:
                        conn.execute(select(func.pg_advisory_xact_lock(TURN)))
                    seen = None
                    for fn, future, sees in batch:
                        try:
                            if sees != seen:  # before the savepoint, whose undoing would undo it
                                sight.see(conn, sees)
                                seen = sees
                            with conn.begin_nested():
                                outcomes.append((future, fn(conn), None))
                        except BaseException as e:
                            if not self._alive(conn):
                                raise
                            outcomes.append((future, None, e))
                    news.send(conn, self.name)
        except BaseException as e:
            for _, future, _ in batch:
                future.set_exception(e)
            return
        for future, value, error in outcomes:
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    def _alive(self, conn: Connection) -> bool:
        """Whether the transaction still stands: a full disk or a lost connection ends it for everyone in it."""
        if conn.invalidated or conn.closed:
            return False
        return not self.sqlite or bool(conn.connection.dbapi_connection.in_transaction)  # type: ignore[union-attr]


class _plain_errors:
    """Turns a database that is away or full into a sentence."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OperationalError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
            said = str(error.orig)
            log.error("database failed", problem=said)
            if "full" in said or "No space" in said or "disk I/O" in said:
                meters.database_errors.labels("disk_full").inc()
                raise Unavailable(
                    "The disk that holds the database is full; nothing was changed.",
                    code="disk_full",
                    hint="Free some space and try again.",
                ) from error
            meters.database_errors.labels("database_unavailable").inc()
            raise Unavailable(
                "The database does not answer; nothing was changed.",
                code="database_unavailable",
                hint="Try again shortly.",
            ) from error


class _Hinting(SQLiteCompiler):
    """Writes the hints of a statement, `INDEXED BY ...`, where SQLAlchemy's compiler drops them."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:  # noqa: ARG002
        return text


def _tune_sqlite(engine: Engine) -> None:
    engine.dialect.statement_compiler = _Hinting

    @event.listens_for(engine, "connect")
    def connect(dbapi: Any, _: Any) -> None:
        dbapi.isolation_level = None  # we say BEGIN ourselves, below
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "busy_timeout=30000",
            "foreign_keys=ON",
            "cache_size=-32000",
            "temp_store=MEMORY",
        ):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        # A deferred transaction that turns into a writing one can fail at once, whatever the timeout: writers say so at the start.
        immediate = conn.get_execution_options().get("fanlight_write")
        conn.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
