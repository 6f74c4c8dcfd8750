"""Alembic's entry: migrations run on a plain connection, each in its own transaction."""

from alembic import context
from sqlalchemy import create_engine

from fanlight.store.tables import metadata


def run() -> None:
    engine = create_engine(context.config.get_main_option("sqlalchemy.url") or "")
    try:
        with engine.connect() as connection:
            sqlite = connection.dialect.name == "sqlite"
            context.configure(
                connection=connection, target_metadata=metadata, render_as_batch=sqlite, transaction_per_migration=True
            )
            with context.begin_transaction():
                context.run_migrations()
            connection.commit()
    finally:
        engine.dispose()


run()
