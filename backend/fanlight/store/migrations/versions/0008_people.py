"""Accounts, sessions, workspaces and members; what a workspace needs of a blob is its own row."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "person",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("password", sa.String(length=200), nullable=False),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("disabled", sa.BigInteger()),
        sa.Column("seen", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("name", name=op.f("uq_person_name")),
    )
    workspace = op.create_table(
        "workspace",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("most_jobs", sa.Integer()),
        sa.Column("most_cost", sa.BigInteger()),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace")),
    )
    op.bulk_insert(workspace, [{"id": "default", "name": "Default", "created": time.time_ns() // 1000}])
    op.create_table(
        "session",
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("current", sa.String(length=64), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_session_person"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("secret_hash", name=op.f("pk_session")),
    )
    op.create_index("ix_session_person", "session", ["person"])
    op.create_index("ix_session_expires", "session", ["expires"])
    op.create_table(
        "member",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_member_person"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["workspace"], ["workspace.id"], name=op.f("fk_member_workspace"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("workspace", "person", name=op.f("pk_member")),
    )
    op.create_index("ix_member_person", "member", ["person"])
    _reference(["workspace", "digest", "owner"])


def downgrade() -> None:
    op.execute("delete from reference where workspace <> 'default' and owner like 'input:%'")
    _reference(["digest", "owner"])
    op.drop_table("member")
    op.drop_table("session")
    op.drop_table("workspace")
    op.drop_table("person")


def _reference(key: list[str]) -> None:
    """The same picture in two workspaces is needed by both."""
    with op.batch_alter_table("reference") as batch:
        batch.drop_constraint(op.f("pk_reference"), type_="primary")
        batch.create_primary_key(op.f("pk_reference"), key)
