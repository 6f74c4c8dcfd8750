"""News between servers on one PostgreSQL: NOTIFY with the commit, LISTEN on a connection of its own.

A notification says only what has changed, in ids; whoever hears it reads the tables. Nothing depends on one arriving: a server also looks by itself,
every few seconds, for what it may have missed (a connection that was cut, a pooler that swallows LISTEN).
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url

log = structlog.get_logger()
CHANNEL = "fanlight"
LOOK = 5.0  # seconds of silence after which a server looks by itself
RETRY = 1.0  # seconds between two tries to listen, in which it looks by itself as well
MOST = 200  # ids in one notification, which PostgreSQL limits to 8000 bytes; the rest is found by looking
_NOTIFY = text("select pg_notify(:channel, :payload)")


@dataclass
class News:
    """What changed in a commit. Args: events: the table of events has grown; jobs: something is to be claimed; stop, progress: ids of jobs."""

    events: bool = False
    jobs: bool = False
    stop: set[str] = field(default_factory=set)
    progress: set[str] = field(default_factory=set)


EVERYTHING = News(events=True, jobs=True)


def announce(
    conn: Connection,
    *,
    events: bool = False,
    jobs: bool = False,
    stop: Iterable[str] = (),
    progress: Iterable[str] = (),
) -> None:
    """Tells the other servers with the commit of this transaction; one that is undone may be told of, which costs them a look."""
    if conn.dialect.name != "postgresql":
        return
    found: News = conn.info.setdefault(CHANNEL, News())
    found.events |= events
    found.jobs |= jobs
    found.stop.update(stop)
    found.progress.update(progress)


def forget(conn: Connection) -> None:
    """What an earlier transaction of this connection wanted to say."""
    conn.info.pop(CHANNEL, None)


def send(conn: Connection, sender: str) -> None:
    """One notification for all that was announced; delivered when the transaction is committed, and only then."""
    found: News | None = conn.info.pop(CHANNEL, None)
    if found is None:
        return
    stop = sorted(found.stop)[:MOST]
    said = {"from": sender, "events": found.events, "jobs": found.jobs, "stop": stop}
    said["progress"] = sorted(found.progress)[: MOST - len(stop)]
    conn.execute(_NOTIFY, {"channel": CHANNEL, "payload": json.dumps(said)})


class Listener:
    """A thread that hears what other servers announce.

    Args:
        url: of the database.
        name: of this server as a sender, so that it does not hear itself.
        hear: called in the thread, with what was said, or with EVERYTHING where something may have been missed.
    """

    def __init__(self, url: str, name: str, hear: Callable[[News], None]):
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._name, self._hear = name, hear
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="db-news", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(LOOK + 1)

    def _run(self) -> None:
        import psycopg  # comes with the address of a PostgreSQL

        while not self._over.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as conn:
                    conn.execute(f"LISTEN {CHANNEL}")
                    self._hear(EVERYTHING)
                    self._listen(conn)
            except psycopg.Error as e:
                log.warning("news of other servers are not heard", problem=str(e).strip())
                with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile
                    self._hear(EVERYTHING)
                self._over.wait(RETRY)
            except Exception:
                if not self._over.is_set():
                    log.exception("news could not be passed on")
                self._over.wait(RETRY)

    def _listen(self, conn: Any) -> None:
        quiet = 0.0
        while not self._over.is_set():
            heard = False
            for note in conn.notifies(timeout=0.5, stop_after=1):
                heard = True
                self._pass_on(note.payload)
            quiet = 0.0 if heard else quiet + 0.5
            if quiet >= LOOK:
                self._hear(EVERYTHING)
                quiet = 0.0

    def _pass_on(self, payload: str) -> None:
        try:
            said = json.loads(payload)
            mine = said["from"] == self._name
            news = News(bool(said["events"]), bool(said["jobs"]), set(said["stop"]), set(said["progress"]))
        except (ValueError, KeyError, TypeError):  # somebody else's, or of another version
            mine, news = False, EVERYTHING
        if not mine:
            self._hear(news)
