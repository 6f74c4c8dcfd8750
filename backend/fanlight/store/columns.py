"""What tables are made of: the metadata, kinds of columns, and the two columns that say whose a row is."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Integer, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Sequence = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only an INTEGER key
Micros = BigInteger


def workspace_of() -> Column[str]:
    return Column("workspace", String(64), nullable=False)


def who() -> tuple[Column[str], Column[str]]:
    return workspace_of(), Column("principal", String(64), nullable=False)
