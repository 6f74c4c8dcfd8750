"""The tables of people: accounts, their sessions, workspaces and who belongs to them. They are the server's, not a workspace's."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table

from fanlight.store.columns import Micros, metadata

person = Table(
    "person",
    metadata,
    Column("id", String(32), primary_key=True),
    # as it is typed at the door, in lower case
    Column("name", String(64), nullable=False, unique=True),
    Column("password", String(200), nullable=False),
    # may do what concerns the whole server: people and workspaces
    Column("operator", Boolean, nullable=False),
    Column("created", Micros, nullable=False),
    Column("disabled", Micros),
    Column("seen", Micros),
)

# Of the secret in the cookie only a hash is kept.
session = Table(
    "session",
    metadata,
    Column("secret_hash", String(64), primary_key=True),
    Column("person", String(32), ForeignKey("person.id", ondelete="CASCADE"), nullable=False),
    # that the pages show now; a person may have left it since
    Column("current", String(64), nullable=False),
    Column("created", Micros, nullable=False),
    Column("expires", Micros, nullable=False),
    Index("ix_session_person", "person"),
    Index("ix_session_expires", "expires"),
)

# Whom a provider means by the name it has for somebody (OpenID Connect: issuer and subject). Without a person: of an account that was removed, so
# that it does not arise again by itself.
identity = Table(
    "identity",
    metadata,
    Column("issuer", String(500), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("person", String(32), ForeignKey("person.id", ondelete="SET NULL")),
    Column("created", Micros, nullable=False),
    Index("ix_identity_person", "person"),
)

# Answers of a provider that have begun a session, until they would be too old anyway.
spent = Table(
    "spent",
    metadata,
    Column("state_hash", String(64), primary_key=True),
    Column("expires", Micros, nullable=False),
    Index("ix_spent_expires", "expires"),
)

workspace = Table(
    "workspace",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(100), nullable=False),
    # quotas; where there is none the server's own limits hold
    Column("most_jobs", Integer),
    Column("most_cost", BigInteger),
    # its share of the time, where several wait: docs/decisions/0014
    Column("weight", Integer, nullable=False, server_default="1"),
    Column("created", Micros, nullable=False),
)

member = Table(
    "member",
    metadata,
    Column("workspace", String(64), ForeignKey("workspace.id", ondelete="CASCADE"), primary_key=True),
    Column("person", String(32), ForeignKey("person.id", ondelete="CASCADE"), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("created", Micros, nullable=False),
    Index("ix_member_person", "person"),
)
