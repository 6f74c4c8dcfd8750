"""Whom a provider of identities means, and which of its answers have been used."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "identity",
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("person", sa.String(length=32)),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_identity_person"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_identity")),
    )
    op.create_index("ix_identity_person", "identity", ["person"])
    op.create_table(
        "spent",
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_spent")),
    )
    op.create_index("ix_spent_expires", "spent", ["expires"])


def downgrade() -> None:
    op.drop_table("spent")
    op.drop_table("identity")
