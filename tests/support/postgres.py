"""A real PostgreSQL from the distribution. It refuses to be root, so it runs as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

from support.processes import Process, free_port, identity

MISSING = "PostgreSQL server binaries (initdb, postgres) are not installed; on Debian: apt-get install postgresql"


def binaries() -> Path | None:
    """The folder that holds initdb and postgres: on PATH or in Debian's layout, newest version first."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda p: [int(n) for n in re.findall(r"\d+", str(p))], default=None)


def unprivileged() -> str | None:
    """Whom the server runs as: us, unless we are root."""
    if os.geteuid() != 0:
        return None
    known = {u.pw_name for u in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


class Postgres(Process):
    """One server; `database()` gives the URL of a fresh database.

    Args:
        durable: with fsync, as fault tests need it.
    """

    def __init__(self, *, durable: bool = False):
        home = binaries()
        if home is None:
            raise FileNotFoundError(MISSING)
        user = unprivileged()
        # Not pytest's folder: that is closed to other users.
        self.folder = Path(tempfile.mkdtemp(prefix="fanlight-postgres-"))
        if user:
            shutil.chown(self.folder, user)
        self.port = free_port()
        self.numbers = count(1)
        data = self.folder / "data"
        initdb = [home / "initdb", "-N", "-A", "trust", "-U", "fanlight", "-E", "UTF8", "--locale=C", "-D", data]
        subprocess.run(initdb, check=True, capture_output=True, cwd=self.folder, **identity(user))
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": 60,
            "shared_buffers": "32MB",
        }
        if not durable:
            options |= {"fsync": "off", "full_page_writes": "off"}
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [home / "postgres", "-D", data, *flags]
        super().__init__(command, ready=self.accepts, log=self.folder / "postgres.log", user=user, patience=60)

    def url(self, database: str) -> str:
        return f"postgresql://fanlight@127.0.0.1:{self.port}/{database}"

    def accepts(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def database(self) -> str:
        """URL of a new, empty database."""
        name = f"test_{next(self.numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def walled(self) -> str:
        """URL of a new, empty database for its owner, an ordinary role, for whom row-level security holds; it holds for no superuser."""
        url = self.database()
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'ordinary'").fetchone()
            if known is None:
                connection.execute("CREATE ROLE ordinary LOGIN")
            connection.execute(f"ALTER DATABASE {url.rsplit('/', 1)[1]} OWNER TO ordinary")
        return url.replace("//fanlight@", "//ordinary@")

    def drop(self, url: str) -> None:
        """Removes a database, its open connections too."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {url.rsplit('/', 1)[1]} WITH (FORCE)")

    def close(self) -> None:
        self.stop(signal.SIGINT)  # "fast shutdown": does not wait for clients
        shutil.rmtree(self.folder, ignore_errors=True)
