"""One way to the database: `read` and `write` take a function of a connection and run it in one transaction.

SQLite has one writer, so all writes go through one thread that commits several at once: that removes the tail of lock waits and affords
`synchronous=FULL`, which a durable 202 needs. PostgreSQL runs each write in its own transaction.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from fanlight.errors import Unavailable

T = TypeVar("T")
GROUP = 64  # most writes in one commit


def now(conn: Connection) -> int:
    """Microseconds since 1970 by the database's clock, so that servers agree on leases."""
    if conn.dialect.name == "postgresql":
        return int(conn.execute(text("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")).scalar_one())
    return time.time_ns() // 1000


class Database:
    """Args: url: SQLAlchemy URL, `sqlite:///path` or `postgresql://...`."""

    def __init__(self, url: str):
        self.url = url
        self.sqlite = make_url(url).get_backend_name() == "sqlite"
        if self.sqlite:
            Path(make_url(url).database or "").parent.mkdir(parents=True, exist_ok=True)
            self.engine = create_engine(
                url, connect_args={"check_same_thread": False, "timeout": 30}, pool_size=16, max_overflow=32
            )
            _tune_sqlite(self.engine)
        else:
            self.engine = create_engine(url, pool_size=16, max_overflow=16, pool_pre_ping=True)
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="db")
        self._writes: queue.SimpleQueue[tuple[Callable[[Connection], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        if self.sqlite:
            self._writer = threading.Thread(target=self._write_loop, name="db-writer", daemon=True)
            self._writer.start()

    def read(self, fn: Callable[[Connection], T]) -> T:
        """Runs `fn` on a consistent snapshot."""
        with _plain_errors(), self.engine.connect() as conn:
            return fn(conn)

    def write(self, fn: Callable[[Connection], T]) -> T:
        """Runs `fn` in a transaction that is durable when this returns. An exception undoes `fn` and nothing else."""
        with _plain_errors():
            if self.sqlite:
                return self._enqueue(fn).result()
            with self.engine.begin() as conn:
                return fn(conn)

    async def awrite(self, fn: Callable[[Connection], T]) -> T:
        """`write` for the event loop: waits without a thread on SQLite, in one on PostgreSQL."""
        with _plain_errors():
            if self.sqlite:
                return await asyncio.wrap_future(self._enqueue(fn))
            return await asyncio.get_running_loop().run_in_executor(self._pool, self.write, fn)

    async def aread(self, fn: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.read, fn)

    def close(self) -> None:
        if self._writer:
            self._writes.put(None)
            self._writer.join(10)
        self._pool.shutdown()
        self.engine.dispose()

    def _enqueue(self, fn: Callable[[Connection], T]) -> Future[T]:
        future: Future[T] = Future()
        self._writes.put((fn, future))
        return future

    def _write_loop(self) -> None:
        while (first := self._writes.get()) is not None:
            batch = [first]
            while len(batch) < GROUP and not self._writes.empty():
                item = self._writes.get()
                if item is None:
                    self._writes.put(None)
                    break
                batch.append(item)
            self._commit(batch)

    def _commit(self, batch: list[tuple[Callable[[Connection], Any], Future[Any]]]) -> None:
        """Each write in its own savepoint, one commit for all; answers only after the commit."""
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self.engine.connect() as conn:
                conn.execution_options(fanlight_write=True)
                with conn.begin():
                    for fn, future in batch:
                        try:
                            with conn.begin_nested():
                                outcomes.append((future, fn(conn), None))
                        except OperationalError:
                            raise
                        except Exception as e:
                            outcomes.append((future, None, e))
        except Exception as e:
            for _, future in batch:
                future.set_exception(e)
            return
        for future, value, error in outcomes:
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


class _plain_errors:
    """Turns a database that is away or full into a sentence."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OperationalError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
            said = str(error.orig)
            if "full" in said or "No space" in said or "disk I/O" in said:
                raise Unavailable(
                    "The disk that holds the database is full; nothing was changed.",
                    code="disk_full",
                    hint="Free some space and try again.",
                ) from error
            raise Unavailable(
                "The database does not answer; nothing was changed.",
                code="database_unavailable",
                hint="Try again shortly.",
            ) from error


def _tune_sqlite(engine: Engine) -> None:
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
