"""What the doctor found out about a model."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "examination",
        sa.Column("workspace", sa.String(length=64), nullable=False),
        sa.Column("model_digest", sa.String(length=64), nullable=False),
        sa.Column("principal", sa.String(length=64), nullable=False),
        sa.Column("report", json, nullable=False),
        sa.Column("finished", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workspace", "model_digest", name=op.f("pk_examination")),
    )


def downgrade() -> None:
    op.drop_table("examination")
