"""Alembic's entry: migrations run on a plain connection, each in its own transaction, so that one that is killed half-way leaves no trace."""

from typing import Any

from alembic import context
from sqlalchemy import Connection, create_engine, event

from fanlight.store.migrate import ours
from fanlight.store.tables import metadata


def run() -> None:
    engine = create_engine(context.config.get_main_option("sqlalchemy.url") or "")
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def connect(dbapi: Any, _: Any) -> None:
            dbapi.isolation_level = None  # Python's own transactions leave CREATE TABLE outside

        @event.listens_for(engine, "begin")
        def begin(conn: Connection) -> None:
            conn.exec_driver_sql("BEGIN IMMEDIATE")

    else:

        @event.listens_for(engine, "begin")
        def whole(conn: Connection) -> None:
            conn.exec_driver_sql("select set_config('fanlight.server', 'on', true)")  # migrations are of all workspaces

    try:
        with engine.connect() as connection:
            sqlite = connection.dialect.name == "sqlite"
            context.configure(
                connection=connection,
                target_metadata=metadata,
                include_name=ours,
                render_as_batch=sqlite,
                transactional_ddl=True,
                transaction_per_migration=True,
            )
            with context.begin_transaction():
                context.run_migrations()
            connection.commit()
    finally:
        engine.dispose()


run()
